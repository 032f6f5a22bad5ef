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
    case insert, update, delete
}

/// An event, taken apart: tables of slices into the record's value. Nothing is copied, and the tables are used again
/// for the next event, so that taking an event apart allocates nothing.
public struct ParsedEvent: Sendable {
    /// One change of one object; the ranges point into the tables of the event.
    public struct Part: Sendable {
        public var kind: PartKind
        public var model: Slice
        public var id: Slice
        public var fields: Range<Int>
        public var ops: Range<Int>
        public var guards: Range<Int>
    }

    /// A plain write; a value `null` removes the field.
    public struct Field: Sendable {
        public var name: Slice
        public var value: Slice
        public var removes: Bool
        /// The value is a string.
        public var isText: Bool
    }

    /// An operation on one field.
    public struct Operation: Sendable {
        public enum Kind: Sendable {
            case increment(Double)
            /// Ranges of `elements`: each side sorted by its bytes, each value once.
            case change(add: Range<Int>, remove: Range<Int>)
            /// A range of `triples`.
            case splice(Range<Int>)
        }
        public var name: Slice
        public var kind: Kind
    }

    /// `[offset, removed, "text"]`, offsets and counts in Unicode scalars.
    public struct Triple: Sendable {
        public var offset: Int64
        public var removed: Int64
        public var text: Slice
        /// How many scalars the text has.
        public var scalars: Int64
    }

    /// The field's last writer must be this seq; −1: the field must be absent.
    public struct Guard: Sendable {
        public var name: Slice
        public var seq: Seq
    }

    public var site: Site
    public var op: Op
    public var base: Seq
    /// The gateway's clock in milliseconds; −1 if absent.
    public var at: Int64
    /// Who wrote it: a text's slice, nil if absent.
    public var by: Slice?
    /// The site ends with this event.
    public var last: Bool
    /// The parts in order: one, several for a batch, none for a noop.
    public var parts: [Part]
    public var isBatch: Bool
    public var fields: [Field]
    public var operations: [Operation]
    public var elements: [Slice]
    public var triples: [Triple]
    public var guards: [Guard]
}
