/// A range of the record's value: the UTF-8 bytes `start ..< start + count`.
///
/// The slice of a text lies between its quotes and includes its escapes. Canonical escapes are unique, so two slices
/// are the same text exactly if their bytes are equal. Only the order and the length of the decoded text require
/// decoding.
public struct Slice: Hashable, Sendable {
    /// The offset of the first byte in the record's value.
    public var start: Int32
    /// The number of bytes.
    public var count: Int32

    /// Creates the slice of `count` bytes from `start`.
    public init(start: Int, count: Int) {
        self.start = Int32(start)
        self.count = Int32(count)
    }
}

/// The effect of a part on its object.
public enum PartKind: UInt8, Sendable {
    /// `insert` creates or overwrites the object, `update` changes it, `delete` removes it.
    case insert, update, delete
}

/// A parsed event: tables of slices into the record's value. The parser copies nothing, and reuses the tables for the
/// next event, so that parsing does not allocate.
public struct ParsedEvent: Sendable {
    /// One change of one object. The ranges are indices into the tables of the event.
    public struct Part: Sendable {
        /// The kind of the change.
        public var kind: PartKind
        /// The object's model, a text.
        public var model: Slice
        /// The object's id, a text.
        public var id: Slice
        /// The plain writes: a range of `fields`.
        public var fields: Range<Int>
        /// The operations: a range of `operations`.
        public var ops: Range<Int>
        /// The conditions: a range of `guards`.
        public var guards: Range<Int>
    }

    /// A plain write; a value `null` removes the field.
    public struct Field: Sendable {
        /// The field's name, a text.
        public var name: Slice
        /// The value as canonical JSON; a string includes its quotes.
        public var value: Slice
        /// True if the value is `null`, which removes the field.
        public var removes: Bool
        /// True if the value is a string.
        public var isText: Bool
    }

    /// An operation on one field.
    public struct Operation: Sendable {
        /// The kind of the operation.
        public enum Kind: Sendable {
            case increment(Double)
            /// Ranges of `elements`: each range is sorted by bytes, without duplicates.
            case change(add: Range<Int>, remove: Range<Int>)
            /// A range of `triples`.
            case splice(Range<Int>)
        }
        /// The field's name, a text.
        public var name: Slice
        /// The kind of the operation.
        public var kind: Kind
    }

    /// A triple `[offset, removed, "text"]`. Offsets and counts are in Unicode scalars.
    public struct Triple: Sendable {
        /// The number of scalars before the position.
        public var offset: Int64
        /// The number of scalars to remove after the position.
        public var removed: Int64
        /// The text to insert.
        public var text: Slice
        /// The number of scalars of `text`.
        public var scalars: Int64
    }

    /// A condition: the seq of the field's last writer must be `seq`. With −1 the field must be absent.
    public struct Guard: Sendable {
        /// The field's name, a text.
        public var name: Slice
        /// The expected seq.
        public var seq: Seq
    }

    /// The replica that made the event.
    public var site: Site
    /// The number of the event among the site's events.
    public var op: Op
    /// The last seq that the site had folded when it made the event.
    public var base: Seq
    /// The gateway's clock in milliseconds since 1970; −1 if absent.
    public var at: Int64
    /// The author's name, as the slice of a text; nil if absent.
    public var by: Slice?
    /// True if the site ends with this event.
    public var last: Bool
    /// The parts in order: one, several for a batch, none for a noop.
    public var parts: [Part]
    /// True for a batch: either all parts are applied, or none.
    public var isBatch: Bool
    /// The plain writes of all parts, sorted by name in each part.
    public var fields: [Field]
    /// The operations of all parts, sorted by name in each part.
    public var operations: [Operation]
    /// The elements of all adds and removes, as canonical JSON.
    public var elements: [Slice]
    /// The triples of all splices.
    public var triples: [Triple]
    /// The conditions of all parts.
    public var guards: [Guard]
}
