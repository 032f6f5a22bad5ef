/// The addresses at which clients reach other gateways, and the decision which clients have to hear of a change now.
///
/// A client hears of changes at most once in `looks` looks, and not all clients after the same look. If many gateways
/// start or end, each client gets few frames, and the frames of all clients are spread over time.
struct Neighbours {
    /// The number of looks from one turn of a client to the next. A gateway looks about once a second.
    static let looks = 3
    /// The maximum number of addresses that a client is told.
    static let namedMax = 16

    private var all: Set<String> = []
    /// The addresses that clients are told after this look. If there are more, each look selects others at random, so
    /// that clients spread.
    private(set) var named: [String] = []
    /// The number of changes of the gateways.
    private(set) var edition: Int32 = 0
    private var turn = 0

    /// Takes the present addresses of the other gateways.
    mutating func look(_ addresses: Set<String>) {
        turn = (turn + 1) % Self.looks
        named = Self.some(of: addresses)
        guard addresses != all else { return }
        all = addresses
        edition &+= 1
    }

    /// True if the client with this number has to hear `named` now. `told` is the edition that it has heard of.
    func isNews(to client: Int, told: Int32) -> Bool {
        told != edition && client % Self.looks == turn && !named.isEmpty
    }

    /// Returns at most `namedMax` of the addresses, selected at random.
    static func some(of addresses: Set<String>) -> [String] { Array(addresses.shuffled().prefix(namedMax)) }
}
