import ReelBase
import ReelCore
import ReelLab

/// A replay of a recorded session through nodes. Each author uses a separate node if there are enough.
///
/// The log must have the edits in their recorded order, or the final text differs. So consecutive events of one author
/// are sent in one request, and those of the next author when these are durable.
struct NodeReplay {
    private let session: EditingSession
    private let callers: [NodeCaller]
    private let stream: StreamName
    private let sites: [Site]
    /// The seqs of the edits that are durable.
    private var seqs: [Seq] = []

    /// The largest number of events, and of bytes, in one request.
    private static let (eventsMax, bytesMax) = (500, 1 << 20)
    /// The largest number of requests for the snapshot, one every 50 ms, while the snapshot node catches up.
    private static let tries = 400

    /// A replay into a new stream.
    init(_ session: EditingSession, through addresses: [NodeAddress]) async throws {
        self.session = session
        var callers: [NodeCaller] = []
        for author in 0..<session.authors {
            let first = author % addresses.count
            callers.append(try await NodeCaller(Array(addresses[first...] + addresses[..<first])))
        }
        self.callers = callers
        sites = (0...session.authors).map { _ in Site.random() }
        guard let stream = StreamName("replay-\(Site.random())") else {
            throw CommandError(.failed, "the name of a stream could not be created")
        }
        self.stream = stream
    }

    /// Publishes all edits and waits until a snapshot node has folded them. Returns the duration in nanoseconds, and
    /// the place where the final text differs from the recorded one; nil: it does not.
    ///
    /// - Parameter progress: is called with the number of durable edits, after each request.
    mutating func run(progress: (Int) -> Void) async throws -> (durationNs: Int64, difference: TextDifference?) {
        let path = "/v1/streams/\(stream)"
        let epoch = try StreamAnswer(try await callers[0].get("\(path)/head")).epoch
        let opening = try await publish([session.opening(site: sites[session.authors])], epoch, callers[0])
        let start = MonotonicClock.nowNs()
        while seqs.count < session.edits.count {
            let author = session.edits[seqs.count].author
            let acked = try await publish(nextEvents(after: opening[0]), epoch, callers[author])
            seqs += acked
            progress(seqs.count)
        }
        let last = seqs.last ?? opening[0]
        for _ in 0..<Self.tries {
            let snapshot = try SnapshotLines(try await callers[0].get("\(path)/snapshot"))
            if snapshot.seq >= last {
                return (
                    MonotonicClock.nowNs() - start, TextDifference(found: try text(snapshot), expected: session.endText)
                )
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw CommandError(.failed, "no snapshot node has folded seq \(last) in time")
    }

    /// Returns the next consecutive edits of one author, as events. `opening`: the seq of the first event of the
    /// stream.
    private func nextEvents(after opening: Seq) -> [[UInt8]] {
        let first = seqs.count
        var (events, bytes): ([[UInt8]], Int) = ([], 0)
        for edit in session.edits[first...].prefix(Self.eventsMax) {
            guard edit.author == session.edits[first].author, bytes < Self.bytesMax else { break }
            // After the durable edits, the author knew only edits of this author, which are always visible.
            let base = min(edit.base, first - 1)
            var event: [UInt8] = []
            session.write(edit, site: sites[edit.author], base: base < 0 ? opening : seqs[base], to: &event)
            bytes += event.count
            events.append(event)
        }
        return events
    }

    /// Publishes events and returns the seqs at which they are durable.
    private func publish(_ events: [[UInt8]], _ epoch: String, _ caller: NodeCaller) async throws -> [Seq] {
        var body = Array(#"{"epoch":"\#(epoch)","events":["#.utf8)
        body += events.joined(separator: ",".utf8)
        body += "]}".utf8
        let node = caller.addresses.first
        let acks = try Acks(try await caller.post("/v1/streams/\(stream)/events?outcome=0", body)).acks
        guard acks.count == events.count else {
            throw CommandError(.badData, "found \(acks.count) acks for \(events.count) events")
        }
        let seqs = acks.sorted { $0.op < $1.op }.map(\.seq)
        return caller.addresses.first == node ? seqs : try await consumed(acks, epoch, caller)
    }

    /// Returns the seqs at which the events were consumed, after a retry at another node. The events can be in the log
    /// twice, and the acks can name the second copies; the fold consumes the first ones.
    private func consumed(_ acks: [Acks.Ack], _ epoch: String, _ caller: NodeCaller) async throws -> [Seq] {
        let ours = Set(acks.map { Place(site: $0.site, op: $0.op) })
        var firsts: [Place: Seq] = [:]
        let range = "after=\(seqs.last ?? .none)&epoch=\(epoch)&limit=10000"
        for event in try StreamAnswer(try await caller.get("/v1/streams/\(stream)/events?\(range)")).events {
            guard let copy = try? event.bytes.withUnsafeBytes({ (bytes) throws(ReelError) in try Acks.Ack(bytes) })
            else { continue }
            let place = Place(site: copy.site, op: copy.op)
            if ours.contains(place), firsts[place] == nil { firsts[place] = copy.seq }
        }
        return acks.sorted { $0.op < $1.op }.map { firsts[Place(site: $0.site, op: $0.op)] ?? $0.seq }
    }

    /// The identity of an event in the stream.
    private struct Place: Hashable {
        var site: String
        var op: Op
    }

    /// Returns the text of a snapshot; an empty text if there is none.
    private func text(_ snapshot: SnapshotLines) throws(CommandError) -> String {
        for line in snapshot.lines.dropFirst().dropLast() {
            guard let object = try ObjectLine(line), object.model == EditingSession.model else { continue }
            let text = object.fields.first { $0.name == EditingSession.field }?.value
            return text.map { EditingSession.text($0.utf8) } ?? ""
        }
        return ""
    }
}
