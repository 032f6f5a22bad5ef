/// The content that the view of a draft shows.
protocol DraftView: Sendable {
    associatedtype Content: DraftContent
    /// An edit of another author, in the form that an app performs on its view.
    associatedtype Change: Sendable

    init(_ content: Content)

    /// The place after the last element of the content.
    var end: Int { get }

    /// Performs an edit of another author.
    mutating func perform(_ hunk: Patch<Content>.Hunk) -> Change
}
