internal import ReelClient

// The kinds of fields. In the body of a model they have short names, such as `Field`.
extension Schema {
    /// A field that is written once, with the insert of the object, such as the time of its creation.
    ///
    /// An insert is rejected if another device has already written the field of the same object. A change of the
    /// property is an error. Other writers of the stream can change the field nevertheless: `Dataset.save` reports
    /// that.
    public struct Constant: Sendable {
        let field: SchemaField<M>

        /// Creates a constant. The property is a `var`, because it is set when an object is read.
        ///
        /// - Parameters:
        ///   - name: the name of the field in the stream, 1 to 128 bytes.
        ///   - keyPath: the property. If its type is not optional, an object without the field cannot be read.
        ///   - formerly: the name of the field in earlier versions of the app.
        public init<Value: FieldValue>(
            _ name: String,
            _ keyPath: any WritableKeyPath<M, Value> & Sendable,
            formerly: String? = nil
        ) {
            field = SchemaField(.constant, name, keyPath, formerly: formerly)
        }
    }

    /// A field whose last write wins.
    public struct Field: Sendable {
        let field: SchemaField<M>

        /// Creates a field.
        ///
        /// - Parameters:
        ///   - name: the name of the field in the stream, 1 to 128 bytes.
        ///   - keyPath: the property. If its type is optional, its default must be nil, because nil removes the field.
        ///   - formerly: the name of the field in earlier versions of the app.
        public init<Value: FieldValue>(
            _ name: String,
            _ keyPath: any WritableKeyPath<M, Value> & Sendable,
            formerly: String? = nil
        ) {
            field = SchemaField(.value, name, keyPath, formerly: formerly)
        }
    }

    /// A number to which concurrent changes are added. `votes += 1` sends an increment by 1.
    public struct Counter: Sendable {
        let field: SchemaField<M>

        /// Creates a counter.
        ///
        /// - Parameters:
        ///   - name: the name of the field in the stream, 1 to 128 bytes.
        ///   - keyPath: the property, whose default must be 0.
        ///   - formerly: the name of the field in earlier versions of the app.
        public init(_ name: String, _ keyPath: any WritableKeyPath<M, Int> & Sendable, formerly: String? = nil) {
            let plain = SchemaField(.counter, name, keyPath, formerly: formerly)
            field = SchemaField(.counter, name, keyPath, formerly: formerly, read: plain.read, write: plain.write) {
                (old, new, _) throws(FieldValueError) in
                try increment(from: old[keyPath: keyPath], to: new[keyPath: keyPath])
            }
        }
    }

    /// Returns the increment that turns one count into another; nil if both are equal.
    ///
    /// - Throws: `FieldValueError` if the stream cannot hold the new count or the increment exactly.
    static func increment(from old: Int, to new: Int) throws(FieldValueError) -> FieldOperation? {
        if old == new { return nil }
        _ = try new.json()
        let (amount, overflows) = new.subtractingReportingOverflow(old)
        guard !overflows, let exact = Double(exactly: amount) else {
            throw FieldValueError(found: "a change from \(old) to \(new)", expected: "a change of at most 2^53")
        }
        return .increment(exact)
    }

    /// A set in which concurrent insertions and removals merge. A change of the property sends only the elements that
    /// were inserted and removed.
    public struct MergedSet: Sendable {
        let field: SchemaField<M>

        /// Creates a set.
        ///
        /// - Parameters:
        ///   - name: the name of the field in the stream, 1 to 128 bytes.
        ///   - keyPath: the property, whose default must be the empty set.
        ///   - formerly: the name of the field in earlier versions of the app.
        public init<Element: FieldValue & Hashable>(
            _ name: String,
            _ keyPath: any WritableKeyPath<M, Set<Element>> & Sendable,
            formerly: String? = nil
        ) {
            field = SchemaField(
                .mergedSet,
                name,
                keyPath,
                formerly: formerly,
                read: { (json, model) throws(FieldValueError) in
                    model[keyPath: keyPath] = try SetDifference.elements(of: json)
                },
                write: { (model) throws(FieldValueError) in try SetDifference.json(of: model[keyPath: keyPath]) },
                operate: { (old, new, present) throws(FieldValueError) in
                    try SetDifference.operation(
                        from: old[keyPath: keyPath],
                        to: new[keyPath: keyPath],
                        in: present
                    )
                }
            )
        }
    }

    /// A text in which concurrent edits merge. A change of the property sends the smallest splice that makes it.
    public struct Text: Sendable {
        let field: SchemaField<M>

        /// Creates a text.
        ///
        /// - Parameters:
        ///   - name: the name of the field in the stream, 1 to 128 bytes.
        ///   - keyPath: the property, whose default must be the empty text.
        ///   - formerly: the name of the field in earlier versions of the app.
        public init(_ name: String, _ keyPath: any WritableKeyPath<M, String> & Sendable, formerly: String? = nil) {
            let plain = SchemaField(.text, name, keyPath, formerly: formerly)
            field = SchemaField(.text, name, keyPath, formerly: formerly, read: plain.read, write: plain.write) {
                (old, new, present) throws(FieldValueError) in
                let splices = TextDifference.splices(
                    from: old[keyPath: keyPath],
                    to: new[keyPath: keyPath],
                    in: present?.string ?? ""
                )
                return splices.isEmpty ? nil : .splice(splices)
            }
        }
    }

    /// Bytes in which concurrent edits merge. A change of the property sends the smallest splice that makes it.
    ///
    /// In the stream the field is a text with one Unicode scalar, U+0000 to U+00FF, for each byte. Bytes that are only
    /// replaced as a whole are better stored as a `Field` of `Data`, which is shorter.
    public struct Bytes: Sendable {
        let field: SchemaField<M>

        /// Creates bytes.
        ///
        /// - Parameters:
        ///   - name: the name of the field in the stream, 1 to 128 bytes.
        ///   - keyPath: the property, such as `[UInt8]` or `Data`, whose default must be empty.
        ///   - formerly: the name of the field in earlier versions of the app.
        public init<Value: RangeReplaceableCollection<UInt8> & Sendable>(
            _ name: String,
            _ keyPath: any WritableKeyPath<M, Value> & Sendable,
            formerly: String? = nil
        ) {
            field = SchemaField(
                .bytes,
                name,
                keyPath,
                formerly: formerly,
                read: { (json, model) throws(FieldValueError) in
                    model[keyPath: keyPath] = Value(try ByteDifference.bytes(of: json))
                },
                write: { (model) in .string(ByteDifference.text(of: model[keyPath: keyPath])) },
                operate: { (old, new, present) throws(FieldValueError) in
                    let splices = ByteDifference.splices(
                        from: Array(old[keyPath: keyPath]),
                        to: Array(new[keyPath: keyPath]),
                        in: try present.map(ByteDifference.bytes) ?? []
                    )
                    return splices.isEmpty ? nil : .splice(splices)
                }
            )
        }
    }

    /// A reference to an object of another model. The last write wins.
    public struct Reference: Sendable {
        let field: SchemaField<M>

        /// Creates a reference that may be absent.
        ///
        /// - Parameters:
        ///   - name: the name of the field in the stream, 1 to 128 bytes.
        ///   - keyPath: the property, whose default must be nil.
        ///   - formerly: the name of the field in earlier versions of the app.
        public init<Target: Model>(
            _ name: String,
            _ keyPath: any WritableKeyPath<M, Ref<Target>?> & Sendable,
            formerly: String? = nil
        ) {
            field = SchemaField(.reference, name, keyPath, formerly: formerly)
        }
    }

    /// The place of the object in a list. A schema has at most one. The last write wins.
    public struct Order: Sendable {
        let field: SchemaField<M>

        /// Creates the place of an object in a list.
        ///
        /// - Parameters:
        ///   - name: the name of the field in the stream, 1 to 128 bytes.
        ///   - keyPath: the property.
        ///   - formerly: the name of the field in earlier versions of the app.
        public init(_ name: String, _ keyPath: any WritableKeyPath<M, Rank> & Sendable, formerly: String? = nil) {
            field = SchemaField(.order, name, keyPath, formerly: formerly)
        }
    }
}
