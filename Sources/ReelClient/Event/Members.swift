/// Names and what stands under them, in the order of canonical JSON, each name once.
///
/// Two names are the same if their UTF-8 bytes are; a Swift dictionary would take "é" in its two spellings for one.
/// A later value of a name takes the place of the earlier.
public struct Members<Value: Sendable>: Sendable {
    private var entries: [(name: String, value: Value)] = []

    /// No members.
    public init() {}

    /// The value of a name; setting nil removes it.
    public subscript(name: String) -> Value? {
        get {
            let (index, found) = place(of: name)
            return found ? entries[index].value : nil
        }
        set {
            let (index, found) = place(of: name)
            switch (found, newValue) {
            case (true, let value?): entries[index].value = value
            case (true, nil): entries.remove(at: index)
            case (false, let value?): entries.insert((name, value), at: index)
            case (false, nil): break
            }
        }
    }

    /// The members of both; where both have a name, the other's value.
    public func merging(_ other: Members) -> Members {
        var merged = self
        for (name, value) in other { merged[name] = value }
        return merged
    }

    /// The names, in order.
    public var names: [String] { entries.map(\.name) }

    private func place(of name: String) -> (index: Int, found: Bool) {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].name.utf16.lexicographicallyPrecedes(name.utf16) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return (low, low < entries.count && entries[low].name.utf8.elementsEqual(name.utf8))
    }
}

extension Members: RandomAccessCollection {
    /// The place of the first member.
    public var startIndex: Int { 0 }
    /// The place behind the last member.
    public var endIndex: Int { entries.count }
    /// The member at a place.
    public subscript(position: Int) -> (name: String, value: Value) { entries[position] }
}

extension Members: ExpressibleByDictionaryLiteral {
    /// The members of a literal; of a name that stands twice the later value.
    public init(dictionaryLiteral elements: (String, Value)...) {
        for (name, value) in elements { self[name] = value }
    }
}

extension Members: Equatable where Value: Equatable {
    /// Whether both have the same names, byte by byte, with equal values.
    public static func == (a: Members, b: Members) -> Bool {
        a.count == b.count && zip(a, b).allSatisfy { $0.name.utf8.elementsEqual($1.name.utf8) && $0.value == $1.value }
    }
}
