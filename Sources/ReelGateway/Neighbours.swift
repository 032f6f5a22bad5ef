/// Where clients reach the other gateways, and which clients are to hear that these are others than before.
///
/// A client hears of changes at most once in so many looks, and not all clients after the same look. So where many
/// gateways start or end, each client gets few frames, and the frames of all clients are spread over time.
struct Neighbours {
    /// Looks from one moment of a client to the next; a gateway looks about once a second.
    static let looks = 3
    /// No more addresses are named to a client.
    static let namedMax = 16

    private var all: Set<String> = []
    /// What is named to clients after this look. Where there are more, it is others after each, so that clients spread.
    private(set) var named: [String] = []
    /// Counts how often the gateways have changed.
    private(set) var edition: Int32 = 0
    private var turn = 0

    /// The addresses of the other gateways as they are now.
    mutating func look(_ addresses: Set<String>) {
        turn = (turn + 1) % Self.looks
        named = Self.some(of: addresses)
        guard addresses != all else { return }
        all = addresses
        edition &+= 1
    }

    /// True if the client with this number is to hear what is `named`; `told`: the edition of what it has heard.
    func isNews(to client: Int, told: Int32) -> Bool {
        told != edition && client % Self.looks == turn && !named.isEmpty
    }

    /// As many of the addresses as are named to a client, by chance.
    static func some(of addresses: Set<String>) -> [String] { Array(addresses.shuffled().prefix(namedMax)) }
}
