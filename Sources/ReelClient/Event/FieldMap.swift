import ReelBase

/// A map from names to values, in the order of canonical JSON. Each name occurs once.
///
/// Two names are equal if their UTF-8 bytes are; a Swift dictionary would treat the two spellings of "é" as one name. A
/// later value of a name replaces the earlier one.
public struct FieldMap<Value: Sendable>: Sendable {
    private var entries: [(name: String, value: Value)] = []

    /// Creates an empty map.
    public init() {}

    /// Creates the map of members that are in order, as the fold has them.
    init(sorted entries: [(name: String, value: Value)]) { self.entries = entries }

    /// The value of a name; nil if there is none. Setting nil removes it.
    public subscript(name: String) -> Value? {
        get {
            let (index, found) = position(of: name)
            return found ? entries[index].value : nil
        }
        set {
            let (index, found) = position(of: name)
            switch (found, newValue) {
            case (true, let value?): entries[index].value = value
            case (true, nil): entries.remove(at: index)
            case (false, let value?): entries.insert((name, value), at: index)
            case (false, nil): break
            }
        }
    }

    /// Returns the members of both maps. If both have a name, the value of `other` is used.
    public func merging(_ other: FieldMap) -> FieldMap {
        var merged = self
        for (name, value) in other { merged[name] = value }
        return merged
    }

    /// The names, in order.
    public var names: [String] { entries.map(\.name) }

    /// Returns the index of a name; nil if there is none.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - guess: the index at which the name probably is. It becomes the index at which the next name may be, so names
    ///     that come in order need no search.
    func index(of name: String, near guess: inout Int) -> Int? {
        var index = guess
        if !entries.indices.contains(index) || !entries[index].name.hasBytes(of: name) {
            let position = position(of: name)
            guard position.found else {
                guess = position.index
                return nil
            }
            index = position.index
        }
        guess = index + 1
        return index
    }

    private func position(of name: String) -> (index: Int, found: Bool) {
        // Names that are appended in order need one comparison.
        guard let last = entries.last, last.name.comesInJSON(before: name) != true else {
            return (entries.count, false)
        }
        let (index, isFound) = entries.sortedIndex { entry in
            switch entry.name.comesInJSON(before: name) {
            case true: -1
            case false: 1
            case nil: 0
            }
        }
        return (index, isFound)
    }
}

extension String {
    fileprivate func hasBytes(of other: String) -> Bool {
        var (a, b) = (self, other)
        return a.withUTF8 { a in
            b.withUTF8 { b in a.count == b.count && UnsafeRawBufferPointer(a).elementsEqual(UnsafeRawBufferPointer(b)) }
        }
    }

    /// Returns true if this name comes before another one in canonical JSON, which is the order of UTF-16. Nil if both
    /// have the same bytes.
    fileprivate func comesInJSON(before other: String) -> Bool? {
        var (a, b) = (self, other)
        return a.withUTF8 { a in
            b.withUTF8 { b in
                var index = 0
                while index < a.count, index < b.count, a[index] == b[index] { index += 1 }
                guard index < a.count, index < b.count else { return a.count == b.count ? nil : a.count < b.count }
                // In UTF-16 the scalars above U+FFFF come before those from U+E000.
                let isSwapped =
                    min(a[index], b[index]) >= 0xEE && max(a[index], b[index]) >= 0xF0
                    && min(a[index], b[index]) < 0xF0
                return (a[index] < b[index]) != isSwapped
            }
        }
    }
}

extension FieldMap: RandomAccessCollection {
    /// The index of the first member.
    public var startIndex: Int { 0 }
    /// The index after the last member.
    public var endIndex: Int { entries.count }
    /// The member at an index.
    public subscript(position: Int) -> (name: String, value: Value) { entries[position] }
}

extension FieldMap: ExpressibleByDictionaryLiteral {
    /// Creates the map of a literal. If a name occurs twice, the later value is used.
    public init(dictionaryLiteral elements: (String, Value)...) {
        for (name, value) in elements { self[name] = value }
    }
}

extension FieldMap: Hashable where Value: Hashable {
    /// Hashes the names and values in order.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for (name, value) in self {
            hasher.combine(name)
            hasher.combine(value)
        }
    }
}

extension FieldMap: Equatable where Value: Equatable {
    /// Returns true if both maps have the same names, byte by byte, with equal values.
    public static func == (a: FieldMap, b: FieldMap) -> Bool {
        a.count == b.count && zip(a, b).allSatisfy { $0.name.hasBytes(of: $1.name) && $0.value == $1.value }
    }
}
