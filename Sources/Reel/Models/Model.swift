/// A type whose values are the objects of one model in a stream.
///
///     struct Task: Model {
///         let id: ID
///         var title = ""
///         var isDone = false
///         var votes = 0
///
///         init(id: ID) { self.id = id }
///
///         static let schema = Schema<Task>("task") {
///             Field("title", \.title)
///             Field("done", \.isDone)
///             Counter("votes", \.votes)
///         }
///     }
///
/// A property that the schema does not name stays on the device: it is neither stored nor sent.
public protocol Model: Identifiable, Sendable where ID == ModelID<Self> {
    /// The id of an object of the model.
    associatedtype ID = ModelID<Self>

    /// The name of the model and its fields.
    static var schema: Schema<Self> { get }

    /// Creates a value in which each property has its default. A field that was never written shows this default.
    init(id: ID)
}

// The kinds of fields, under short names in the body of a model. They are no names of the module: `Text` would
// otherwise be ambiguous in each file that also imports SwiftUI.
extension Model {
    /// A field that is written once, with the insert.
    public typealias Constant = Schema<Self>.Constant
    /// A field whose last write wins.
    public typealias Field = Schema<Self>.Field
    /// A number to which concurrent changes are added.
    public typealias Counter = Schema<Self>.Counter
    /// A set in which concurrent insertions and removals merge.
    public typealias MergedSet = Schema<Self>.MergedSet
    /// A text in which concurrent edits merge.
    public typealias Text = Schema<Self>.Text
    /// Bytes in which concurrent edits merge.
    public typealias Bytes = Schema<Self>.Bytes
    /// A reference to an object of another model.
    public typealias Reference = Schema<Self>.Reference
    /// The place of the object in a list.
    public typealias Order = Schema<Self>.Order
}
