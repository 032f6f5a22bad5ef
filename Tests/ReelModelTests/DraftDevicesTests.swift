import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Random typing into one text on several devices, with cuts and restarts.
@Suite(.timeLimit(.minutes(10))) struct DraftDevicesTests {
    /// A device with its file, and a view of its draft.
    private final class Device {
        let name: String
        let file: LosableFile
        let network: FakeNetwork
        /// The seed of the client. Two devices with one seed would take the same site.
        private var seed: UInt64
        private(set) var client: SyncClient
        private(set) var dataset: Dataset
        private(set) var draft: TextDraft
        var view: String

        init(_ name: String, _ network: FakeNetwork, seed: UInt64, job: Job?) async throws {
            (self.name, self.network, self.seed) = (name, network, seed)
            file = try LosableFile()
            client = try network.client(nodes: [name], store: .file(file.path), seed: seed)
            dataset = try await client.open("s", models: [Job.self], from: .beginning)
            if let job { _ = try await dataset.insert(job).outcome() }
            let dataset = dataset
            try await eventually("the job") { try dataset.object(ModelID<Job>("1")) != nil }
            draft = try dataset.draft(of: ModelID<Job>("1"), \.note)
            view = draft.text
        }

        func restart() async throws {
            try await draft.flush()
            await client.close()
            seed += 1
            client = try network.client(nodes: [name], store: .file(file.path), seed: seed)
            dataset = try await client.open("s", models: [Job.self], from: .beginning)
            draft = try dataset.draft(of: ModelID<Job>("1"), \.note)
            view = draft.text
        }

        /// Takes one edit of another author. Returns false if none waits.
        func take() -> Bool {
            guard let change = draft.takeRemoteChange() else { return false }
            view = DraftText.replaced(view, change.utf16, change.text)
            return true
        }

        var isSane: Bool {
            let (text, selection) = (draft.text, draft.selection)
            return view.utf8.elementsEqual(text.utf8) && DraftText.isUTF16Border(selection.lowerBound, of: text)
                && DraftText.isUTF16Border(selection.upperBound, of: text)
        }
    }

    /// The characters that were typed, each one once. They form no clusters of several scalars on their own.
    private struct Typed {
        private var next: UInt32 = 0x4E00
        private(set) var all: Set<Unicode.Scalar> = []
        var removed: Set<Unicode.Scalar> = []
        /// Those in clusters whose inside was changed, which two authors may have written again.
        var rewritten: Set<Unicode.Scalar> = []

        mutating func character() -> String {
            next += 1
            guard let scalar = Unicode.Scalar(next) else { return "" }
            all.insert(scalar)
            return String(Character(scalar))
        }
    }

    private func type(_ device: Device, _ typed: inout Typed, _ random: inout SeededNumbers) throws {
        let old = device.draft.text
        var (range, text) = DraftText.edit(of: old, &random)
        if random.oneIn(2) { range = range.lowerBound..<range.lowerBound }
        text = random.oneIn(6) ? "" : typed.character() + text + (random.oneIn(3) ? typed.character() : "")
        let units = Array(old.utf16)
        typed.removed.formUnion(String(decoding: units[range], as: UTF16.self).unicodeScalars)
        // The clusters at both ends, if the range begins or ends inside of them.
        for place in [range.lowerBound, range.upperBound] where !DraftText.isUTF16Border(place, of: old) {
            let index = String.Index(utf16Offset: place, in: old)
            let start = old.clusterBoundary(notAfter: index)
            typed.rewritten.formUnion(old[start..<old.clusterBoundary(notBefore: index)].unicodeScalars)
        }
        try device.draft.replace(utf16: range, with: text)
        device.view = DraftText.replaced(device.view, range, text)
    }

    private func run(_ seed: UInt64) async throws {
        var random = SeededNumbers(seed)
        let network = try FakeNetwork()
        var typed = Typed()
        var job = Job(id: "1")
        job.note = random.oneIn(2) ? "" : "ab😀" + typed.character()
        let names = Array(["a", "b", "c", "d"].prefix(2 + random.below(3)))
        var devices: [Device] = []
        for (index, name) in names.enumerated() {
            let job = index == 0 ? job : nil
            devices.append(try await Device(name, network, seed: UInt64(1_000 * (index + 1)), job: job))
        }
        for _ in 0..<100 {
            let device = random.pick(devices)
            switch random.below(16) {
            case 0..<8: try type(device, &typed, &random)
            case 8, 9: _ = device.take()
            case 10:
                let place = random.below(device.view.utf16.count + 1)
                device.draft.selection = place..<place + random.below(5)
            case 11:
                let name = device.name
                try await network.on { network in
                    if network.down.remove(name) == nil { network.kill(name) }
                }
            case 12: try await device.draft.flush()
            case 13 where random.oneIn(3): try await device.restart()
            default: await Task.yield()
            }
            #expect(device.isSane, "REEL_SEED=\(seed)")
        }
        try await network.on { $0.down = [] }
        for device in devices {
            try await device.draft.flush()
            try await device.dataset.stream.flush(deadline: .seconds(60))
        }
        let head = try await network.on { $0.head }
        for device in devices { try await device.dataset.stream.waitUntil(seq: head) }
        let text = try #require(try devices[0].dataset.object(ModelID<Job>("1"))?.note)
        for device in devices {
            #expect(try device.dataset.object(ModelID<Job>("1"))?.note.utf8.elementsEqual(text.utf8) == true)
            let draft = device.draft
            try await eventually("equal drafts, REEL_SEED=\(seed)") {
                while device.take() {}
                return draft.text.utf8.elementsEqual(text.utf8)
            }
            #expect(device.isSane && draft.problem == nil && draft.takeRefused().isEmpty, "REEL_SEED=\(seed)")
        }
        var counts: [Unicode.Scalar: Int] = [:]
        for scalar in text.unicodeScalars { counts[scalar, default: 0] += 1 }
        for scalar in typed.all.subtracting(typed.rewritten) {
            let count = counts[scalar] ?? 0
            #expect(count <= 1 && (count == 1 || typed.removed.contains(scalar)), "REEL_SEED=\(seed) \(scalar)")
        }
        for device in devices { await device.client.close() }
    }

    @Test("random typing on two to four devices with cuts and restarts ends in equal texts, with each character once")
    func random() async throws {
        try await Seeds.runAsync(20) { seed in try await run(seed) }
    }

    @Test("random edits of bytes on two devices with cuts end in equal bytes") func bytes() async throws {
        try await Seeds.runAsync(10) { seed in
            var random = SeededNumbers(seed)
            let network = try FakeNetwork()
            let clients = [
                try network.client(nodes: ["a"], seed: 1_000), try network.client(nodes: ["b"], seed: 2_000),
            ]
            let (id, one) = (ModelID<Job>("1"), try await clients[0].open("s", models: [Job.self], from: .beginning))
            let two = try await clients[1].open("s", models: [Job.self], from: .beginning)
            _ = try await one.insert(Job(id: id)).outcome()
            try await two.stream.waitUntil(seq: 0)
            let drafts = [try one.draft(of: id, \.data), try two.draft(of: id, \.data)]
            for _ in 0..<100 {
                let (draft, name) = (random.pick(drafts), random.pick(["a", "b"]))
                let count = draft.bytes.count
                let start = random.below(count + 1)
                let end = min(count, start + random.below(4))
                let bytes = (0..<random.below(5)).map { _ in UInt8.random(in: 0...255, using: &random) }
                try draft.replace(start..<end, with: bytes)
                if random.oneIn(3) { _ = draft.takeRemoteChange() }
                if random.oneIn(4) { try await draft.flush() }
                if random.oneIn(8) { try await network.on { if $0.down.remove(name) == nil { $0.kill(name) } } }
            }
            try await network.on { $0.down = [] }
            for draft in drafts { try await draft.flush() }
            for dataset in [one, two] { try await dataset.stream.flush(deadline: .seconds(60)) }
            let head = try await network.on { $0.head }
            for dataset in [one, two] { try await dataset.stream.waitUntil(seq: head) }
            let data = try one.object(id)?.data
            for draft in drafts {
                try await eventually("equal bytes, REEL_SEED=\(seed)") {
                    while draft.takeRemoteChange() != nil {}
                    return draft.bytes == data
                }
                #expect(draft.problem == nil, "REEL_SEED=\(seed)")
            }
            for client in clients { await client.close() }
        }
    }
}
