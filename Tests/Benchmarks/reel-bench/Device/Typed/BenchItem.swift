import Reel
import ReelCore

/// An object of ten fields, as apps have them.
struct BenchItem: Model {
    enum Label: String, FieldValue { case none, urgent, later }

    /// The maximum number of rows of the measured query.
    static let window = 200

    let id: ID
    var title = ""
    var note = ""
    var isDone = false
    var votes = 0
    var priority = 0.0
    var createdAt = Timestamp(ms: 0)
    var label = Label.none
    var owner: String?
    var parent: Ref<BenchItem>?
    var place = 0

    init(id: ID) { self.id = id }

    static let schema = Schema<BenchItem>("item") {
        Field("title", \.title)
        Text("note", \.note)
        Field("done", \.isDone)
        Counter("votes", \.votes)
        Field("priority", \.priority)
        Field("createdAt", \.createdAt)
        Field("label", \.label)
        Field("owner", \.owner)
        Reference("parent", \.parent)
        Field("place", \.place)
    }

    static let fieldCount = 10

    /// Returns the open items, those with the fewest votes first. Each call makes another query.
    static func open(in items: Dataset) -> Query<BenchItem> {
        items.query(BenchItem.self).filter { !$0.isDone }.sort(by: \.votes, \.place).limit(window)
    }

    /// Returns the object with a number. The order of the ids is not that of the numbers.
    static func numbered(_ number: Int) -> BenchItem {
        var item = BenchItem(id: id(number))
        (item.title, item.note) = ("Title of the item \(number)", "A note")
        (item.isDone, item.votes, item.priority) = (number % 4 == 0, number % 1_000, Double(number) + 0.5)
        (item.createdAt, item.label) = (Timestamp(ms: 1_700_000_000_000 + number), .later)
        (item.owner, item.parent, item.place) = ("ann", Ref(id(number / 50)), number * 31 % 100_003)
        return item
    }

    private static func id(_ number: Int) -> ID { ID("item-\(number * 7_919 % 1_000_003)") }

    /// The event that inserts the object, as the only one with its seq.
    func insertion(seq: Seq) -> LoggedEvent {
        let times = #""createdAt":\#(createdAt.ms),"done":\#(isDone),"label":"\#(label.rawValue)","note":"\#(note)""#
        let relations = #","owner":"\#(owner ?? "")","parent":"\#(parent?.id.text ?? "")","place":\#(place)"#
        let rest = #","priority":\#(priority),"title":"\#(title)","votes":\#(votes)"#
        return LoggedEvent(
            .insert,
            "item",
            id.text,
            #""fields":{"# + times + relations + rest + "}",
            seq: seq,
            site: Int(seq) % LoggedEvent.sites,
            op: Int(seq) / LoggedEvent.sites
        )
    }
}
