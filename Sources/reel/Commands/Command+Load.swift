import Glibc
import ReelLab
import ReelNet

extension Command {
    /// Many clients at once.
    static let load = Command(
        "load",
        "drive gateways with many clients, and say how fast and how whole everything arrives",
        about: """
            Publishers hand over events at a fixed rate, whether or not the cluster keeps up: the latency of an event
            counts from the moment at which it was due. Readers listen, and fetch what they miss. Clients go from one
            gateway to another as real ones do, and send again what was not acked. At the end, or after SIGINT or
            SIGTERM, it waits until everything is acked and has arrived; exit code 1 if that does not happen.
            """,
        settings: [
            NodeArguments.url, streamName, streams, publishers, readers, rate, size, seconds, settle, history, seed,
        ],
        examples: [
            Example("reel load --seconds 10", "ten publishers and ten readers on the local node"),
            Example(
                "reel load --url http://a:7350 --url http://b:7350 --readers 1000 --rate 500 --history run-1",
                "a thousand readers on two gateways, until Ctrl-C; `reel check run-1` then judges what they saw"
            ),
        ]
    ) { options, console in
        let addresses = try NodeArguments.addresses(options).map(\.description)
        guard let streams = LoadPlan.streams(options[streamName], count: options[streams]) else {
            throw Complaint(.usage, "`\(options[streamName])` is no name of a stream")
        }
        var plan = LoadPlan(urls: addresses, streams: streams)
        plan.publishers = options[publishers]
        plan.readers = options[readers]
        plan.rate = Double(options[rate])
        plan.size = options[size]
        plan.seconds = options[seconds].map(Double.init)
        plan.settleSeconds = Double(options[settle])
        plan.seed = UInt64(options[seed] ?? Int.random(in: 0...Int(Int32.max)))
        plan.histories = try options[history].map { try HistoryFolder($0) }
        let load = try LoadRun(plan)
        try load.loop.sync {
            for signal in [SIGINT, SIGTERM] { load.loop.onSignal(signal) { load.stop() } }
        }
        let report = try await load.run()
        try console.print(report.text)
        return report.isComplete ? .done : .failed
    }

    private static let streamName = Setting<String>.text(
        "stream",
        "NAME",
        default: "load",
        "the stream; several are NAME-0, NAME-1 and so on"
    )
    private static let streams = Setting<Int>.number("streams", "N", 1...100_000, default: 1, "so many streams")
    private static let publishers = Setting<Int>.number(
        "publishers",
        "N",
        0...1_000_000,
        default: 10,
        "clients that publish"
    )
    private static let readers = Setting<Int>.number("readers", "N", 0...1_000_000, default: 10, "clients that listen")
    private static let rate = Setting<Int>.number(
        "rate",
        "N",
        1...10_000_000,
        default: 100,
        "events a second, all publishers together"
    )
    private static let size = Setting<Int>.number("size", "BYTES", 1...200_000, default: 200, "of an event, about")
    private static let seconds = Setting<Int?>.number("seconds", "S", 1...1_000_000, "so long; else until Ctrl-C")
    private static let settle = Setting<Int>.number(
        "settle",
        "S",
        0...100_000,
        default: 30,
        "seconds to wait for what is under way at the end"
    )
    private static let history = Setting<String?>.text("history", "DIR", "keep histories there, for `reel check`")
    private static let seed = Setting<Int?>.number("seed", "N", 0...Int.max, "repeats what chance decides")
}
