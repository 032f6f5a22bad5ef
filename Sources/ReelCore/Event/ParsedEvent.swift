/// A piece of the record's value: UTF-8 bytes at `start ..< start + count`.
///
/// A text's slice lies between its quotes and keeps its escapes. Canonical escapes are unique, so two slices name the
/// same text exactly if their bytes are equal; only order and length of the decoded text need decoding.
public struct Slice: Hashable, Sendable {
    /// The offset of the first byte in the record's value.
    public var start: Int32
    /// How many bytes.
    public var count: Int32

    /// The bytes from `start` on, `count` of them.
    public init(start: Int, count: Int) {
        self.start = Int32(start)
        self.count = Int32(count)
    }
}

/// What a part of an event does to its object.
public enum PartKind: UInt8, Sendable {
    /// Creates the object, or writes over it; writes; removes.
    case insert, update, delete
}

/// An event, taken apart: tables of slices into the record's value. Nothing is copied, and the tables are used again
/// for the next event, so that taking an event apart allocates nothing.
public struct ParsedEvent: Sendable {
    /// One change of one object; the ranges point into the tables of the event.
    public struct Part: Sendable {
        /// What it does.
        public var kind: PartKind
        /// The object's model, a text.
        public var model: Slice
        /// The object's id, a text.
        public var id: Slice
        /// Its plain writes: a range of `fields`.
        public var fields: Range<Int>
        /// Its operations: a range of `operations`.
        public var ops: Range<Int>
        /// Its conditions: a range of `guards`.
        public var guards: Range<Int>
    }

    /// A plain write; a value `null` removes the field.
    public struct Field: Sendable {
        /// The field's name, a text.
        public var name: Slice
        /// Canonical JSON, a string with its quotes.
        public var value: Slice
        /// The value is `null`: the field goes away.
        public var removes: Bool
        /// The value is a string.
        public var isText: Bool
    }

    /// An operation on one field.
    public struct Operation: Sendable {
        /// What it does to the field.
        public enum Kind: Sendable {
            case increment(Double)
            /// Ranges of `elements`: each side sorted by its bytes, each value once.
            case change(add: Range<Int>, remove: Range<Int>)
            /// A range of `triples`.
            case splice(Range<Int>)
        }
        /// The field's name, a text.
        public var name: Slice
        /// What it does.
        public var kind: Kind
    }

    /// `[offset, removed, "text"]`, offsets and counts in Unicode scalars.
    public struct Triple: Sendable {
        /// Scalars before the place.
        public var offset: Int64
        /// Scalars taken out behind it.
        public var removed: Int64
        /// What goes in, a text.
        public var text: Slice
        /// How many scalars the text has.
        public var scalars: Int64
    }

    /// The field's last writer must be this seq; −1: the field must be absent.
    public struct Guard: Sendable {
        /// The field's name, a text.
        public var name: Slice
        /// The expected seq.
        public var seq: Seq
    }

    /// Who made it.
    public var site: Site
    /// Its number among the site's events.
    public var op: Op
    /// The last seq that the site had folded when it made the event.
    public var base: Seq
    /// The gateway's clock in milliseconds; −1 if absent.
    public var at: Int64
    /// Who wrote it: a text's slice, nil if absent.
    public var by: Slice?
    /// The site ends with this event.
    public var last: Bool
    /// The parts in order: one, several for a batch, none for a noop.
    public var parts: [Part]
    /// All parts are applied, or none.
    public var isBatch: Bool
    /// The plain writes of all parts, by name in each.
    public var fields: [Field]
    /// The operations of all parts, by name in each.
    public var operations: [Operation]
    /// The elements of all adds and removes: canonical JSON.
    public var elements: [Slice]
    /// The triples of all splices.
    public var triples: [Triple]
    /// The conditions of all parts.
    public var guards: [Guard]
}
