internal import ReelClient

/// The difference of two sets as an operation on the array that stands for a set.
enum SetDifference {
    /// Returns the elements of a stored array. Elements that only a newer version of the app knows are left out.
    static func elements<Element: FieldValue & Hashable>(of json: JSONValue) throws(FieldValueError) -> Set<Element> {
        guard let stored = json.array else { throw FieldValueError(found: json.excerpt, expected: "an array") }
        var elements: Set<Element> = []
        for json in stored {
            if let element = try Element(json: json) { elements.insert(element) }
        }
        return elements
    }

    /// Returns the array that stands for a set.
    static func json<Element: FieldValue & Hashable>(of set: Set<Element>) throws(FieldValueError) -> JSONValue {
        .array(try sorted(set))
    }

    /// Returns the operation that has the effect of an edit; nil if the edit changes nothing.
    ///
    /// - Parameters:
    ///   - old: the set before the edit.
    ///   - new: the set after the edit.
    ///   - present: the stored array on which the operation is performed.
    static func operation<Element: FieldValue & Hashable>(
        from old: Set<Element>,
        to new: Set<Element>,
        in present: JSONValue?
    ) throws(FieldValueError) -> FieldOperation? {
        let (added, removed) = (new.subtracting(old), old.subtracting(new))
        if added.isEmpty, removed.isEmpty { return nil }
        var remove = try sorted(removed)
        var named = Set(remove)
        // The stream compares bytes: an element may be stored in another form, such as another spelling of “é”.
        for json in removed.isEmpty ? [] : present?.array ?? [] where !named.contains(json) {
            guard let element = try Element(json: json), removed.contains(element) else { continue }
            named.insert(json)
            remove.append(json)
        }
        return .change(add: try sorted(added), remove: remove)
    }

    /// Returns the JSON values of elements in the order in which the stream keeps them.
    private static func sorted<Element: FieldValue>(
        _ elements: some Sequence<Element>
    ) throws(FieldValueError) -> [JSONValue] {
        var values: [JSONValue] = []
        for element in elements { values.append(try element.json()) }
        return ElementSet(values).sorted
    }
}
