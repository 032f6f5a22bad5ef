/// The name of a model, and the fields of its objects.
///
///     static let schema = Schema<Task>("task") {
///         Constant("createdAt", \.createdAt)
///         Field("done", \.isDone, formerly: "completed")
///         Counter("votes", \.votes)
///         MergedSet("tags", \.tags)
///         Text("note", \.note)
///         Reference("list", \.list)
///     }
///
/// A schema may change with each version of an app, and devices with several versions share a stream. A field that a
/// version does not know survives its writes. `formerly:` gives the name that a field had in earlier versions: it is
/// read until the field is first written under its present name.
public struct Schema<M: Model>: Sendable {
    /// The name of the model in the stream, 1 to 128 bytes.
    public let name: String
    let fields: [SchemaField<M>]
    /// The fields sorted by the bytes of their names. An object has them in this order too, except for names with
    /// characters beyond U+FFFF.
    let fieldsByName: [SchemaField<M>]

    /// Creates a schema. `Dataset` checks it, so that a fault is an error and not a trap.
    ///
    /// - Parameters:
    ///   - name: the name of the model in the stream, 1 to 128 bytes.
    ///   - fields: the fields, in any order.
    public init(_ name: String, @SchemaBuilder<M> _ fields: () -> [SchemaField<M>]) {
        self.name = name
        self.fields = fields()
        fieldsByName = self.fields.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }

    /// Returns the field of a property; nil if the schema does not name the property.
    func field(at keyPath: PartialKeyPath<M>) -> SchemaField<M>? { fields.first { $0.keyPath == keyPath } }
}

/// Collects the fields of a schema.
@resultBuilder
public enum SchemaBuilder<M: Model> {
    /// Adds a constant.
    public static func buildExpression(_ constant: Schema<M>.Constant) -> [SchemaField<M>] { [constant.field] }
    /// Adds a field.
    public static func buildExpression(_ field: Schema<M>.Field) -> [SchemaField<M>] { [field.field] }
    /// Adds a counter.
    public static func buildExpression(_ counter: Schema<M>.Counter) -> [SchemaField<M>] { [counter.field] }
    /// Adds a set.
    public static func buildExpression(_ set: Schema<M>.MergedSet) -> [SchemaField<M>] { [set.field] }
    /// Adds a text.
    public static func buildExpression(_ text: Schema<M>.Text) -> [SchemaField<M>] { [text.field] }
    /// Adds bytes.
    public static func buildExpression(_ bytes: Schema<M>.Bytes) -> [SchemaField<M>] { [bytes.field] }
    /// Adds a reference.
    public static func buildExpression(_ reference: Schema<M>.Reference) -> [SchemaField<M>] { [reference.field] }
    /// Adds a place in a list.
    public static func buildExpression(_ order: Schema<M>.Order) -> [SchemaField<M>] { [order.field] }

    /// Adds the fields of all lines.
    public static func buildBlock(_ fields: [SchemaField<M>]...) -> [SchemaField<M>] { fields.flatMap(\.self) }
}
