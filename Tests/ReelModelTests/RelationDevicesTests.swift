import ReelClient
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import Reel

/// Devices that tag, attach and delete at the same time, with nodes in memory.
@Suite(.timeLimit(.minutes(20))) struct RelationDevicesTests {
    @Test("two and three devices that tag, attach and delete at the same time end in equal values")
    func random() async throws {
        try await Seeds.runAsync(10) { seed in
            let run = try await RelationRun(seed)
            for _ in 0..<2 { try await run.round() }
            await run.close()
        }
    }

    @Test("orphans say whether the stream is complete") func complete() async throws {
        let network = try FakeNetwork()
        let models: [any Model.Type] = [Folder.self, Item.self]
        let (one, two) = (try network.client(nodes: ["a"], seed: 5), try network.client(nodes: ["b"], seed: 6))
        let first = try await one.open("s", models: models)
        _ = try await first.insert(Folder("1", in: nil)).outcome()
        try await network.on { $0.kill("b") }
        let second = try await two.open("s", models: models)
        try await second.insert(Item("a", in: "1"))
        var orphans = try second.orphans(of: \Item.folder)
        #expect(orphans.values.map(\.id) == ["a"] && !orphans.isComplete)
        try await network.on { $0.down = [] }
        try await second.stream.flush(deadline: .seconds(60))
        orphans = try second.orphans(of: \Item.folder)
        #expect(orphans == Orphans(isComplete: true))
        await one.close()
        await two.close()
    }
}

/// Random edits of several devices, with what they must lead to.
private final class RelationRun {
    private struct Attachment: Hashable {
        var item: Item.ID
        var folder: Folder.ID
    }

    private let seed: UInt64
    private var random: SeededNumbers
    private let network: FakeNetwork
    private var clients: [SyncClient] = []
    private var devices: [Dataset] = []
    private var nodes: [String] { Array(["a", "b", "c"].prefix(devices.count)) }

    private var count = 0
    /// The devices that have attached an item to a folder.
    private var attachers: [Attachment: Set<Int>] = [:]
    /// The devices that have deleted an object.
    private var deleters: [ObjectName: Set<Int>] = [:]

    init(_ seed: UInt64) async throws {
        self.seed = seed
        random = SeededNumbers(seed)
        network = try FakeNetwork(seed: seed)
        for node in random.oneIn(2) ? ["a", "b"] : ["a", "b", "c"] {
            let client = try network.client(nodes: [node], seed: random.next())
            clients.append(client)
            devices.append(
                try await client.open("s", models: [Folder.self, Item.self, Tag.self], from: .beginning)
            )
        }
        for id in ["1", "2"] { try await devices[0].insert(Folder(.init(id), in: nil)) }
        for id in ["x", "y"] { try await devices[0].insert(Tag(id: .init(id))) }
        try await heal()
    }

    func close() async { for client in clients { await client.close() } }

    func round() async throws {
        let cut = Set(nodes.filter { _ in random.below(4) > 0 })
        try await network.on { network in for node in cut { network.kill(node) } }
        for _ in 0..<8 * devices.count {
            let device = random.below(devices.count)
            try await edit(device, isCut: cut.contains(nodes[device]))
        }
        try await heal()
        try await check()
    }

    /// Connects the devices again, and waits until all have everything.
    private func heal() async throws {
        try await network.on { $0.down = [] }
        for device in devices { try await device.stream.flush(deadline: .seconds(60)) }
        let head = try await network.on { $0.head }
        for device in devices { try await device.stream.waitUntil(seq: head) }
    }

    // MARK: Edits

    private func edit(_ device: Int, isCut: Bool) async throws {
        let data = devices[device]
        let folders = try data.objects(of: Folder.self).values.map(\.id)
        let items = try data.objects(of: Item.self).values.map(\.id)
        let tags = try data.objects(of: Tag.self).values.map(\.id)
        count += 1
        switch random.below(12) {
        case 0: try await data.insert(Folder(.init("f\(count)"), in: folders.randomElement(using: &random)))
        case 1:
            guard let folder = folders.randomElement(using: &random) else { return }
            let parent = random.pick(folders)
            try await change(device) { try $0.update(folder) { $0.parent = Ref(parent) } }
        case 2...4:
            let folder = folders.randomElement(using: &random)
            let item = Item(.init("i\(count)"), in: folder, from: items.randomElement(using: &random))
            if let folder { attachers[Attachment(item: item.id, folder: folder), default: []].insert(device) }
            try await data.insert(item)
        case 5:
            guard let item = items.randomElement(using: &random), let folder = folders.randomElement(using: &random)
            else { return }
            attachers[Attachment(item: item, folder: folder), default: []].insert(device)
            try await change(device) { try $0.update(item) { $0.folder = Ref(folder) } }
        case 6, 7:
            guard let item = items.randomElement(using: &random), let tag = tags.randomElement(using: &random)
            else { return }
            try await change(device) { try $0.update(item) { $0.tags.formSymmetricDifference([Ref(tag)]) } }
        case 8: try await data.insert(Tag(id: .init("t\(count)")))
        case 9:
            if let tag = tags.randomElement(using: &random) { try await data.delete(tag) }
            if random.oneIn(2) { try await data.removeDeletedTargets(from: \Item.tags) }
        default:
            guard random.oneIn(2), let folder = folders.randomElement(using: &random) else { return }
            try await delete(folder, device, isCut: isCut)
        }
    }

    /// Makes a write, unless another device has deleted the object in the meantime.
    private func change(_ device: Int, _ body: @Sendable (inout ModelBatch) throws -> Void) async throws {
        do {
            try await devices[device].batch(body)
        } catch let error as ReelError where [.deleted, .noObject].contains(error.code) {
        }
    }

    private func delete(_ folder: Folder.ID, _ device: Int, isCut: Bool) async throws {
        let data = devices[device]
        let expected = try referring(to: folder, data)
        let writes = try await data.delete(folder, cascading: \Folder.parent, \Item.folder, \Item.origin)
        let deleted = Set(writes.handles.flatMap(\.event.changes).map { ObjectName($0.model, id: $0.id) })
        // Only a device that hears of nothing surely has the same objects as a moment before.
        if isCut { #expect(deleted == expected, "REEL_SEED=\(seed)") }
        for name in deleted { deleters[name, default: []].insert(device) }
    }

    /// Returns a folder and all objects that refer to it, directly or through others.
    private func referring(to folder: Folder.ID, _ data: Dataset) throws -> Set<ObjectName> {
        var found: Set<ObjectName> = [ObjectName("folder", id: folder.text)]
        let (folders, items) = (try data.objects(of: Folder.self).values, try data.objects(of: Item.self).values)
        func isFound(_ model: String, _ id: String?) -> Bool {
            id.map { found.contains(ObjectName(model, id: $0)) } ?? false
        }
        var size = 0
        while found.count > size {
            size = found.count
            for each in folders where isFound("folder", each.parent?.id.text) {
                found.insert(ObjectName("folder", id: each.id.text))
            }
            for each in items where isFound("folder", each.folder?.id.text) || isFound("item", each.origin?.id.text) {
                found.insert(ObjectName("item", id: each.id.text))
            }
        }
        return found
    }

    // MARK: Results

    private func check() async throws {
        let first = devices[0]
        let (folders, items) = (try first.objects(of: Folder.self), try first.objects(of: Item.self))
        let tags = try first.objects(of: Tag.self)
        let digest = await first.stream.digest()
        #expect(digest != nil && folders.problems.isEmpty && items.problems.isEmpty, "REEL_SEED=\(seed)")
        let (orphans, origins) = (try first.orphans(of: \Item.folder), try first.orphans(of: \Item.origin))
        for other in devices.dropFirst() {
            #expect(await other.stream.digest() == digest, "REEL_SEED=\(seed)")
            #expect(try other.objects(of: Folder.self) == folders, "REEL_SEED=\(seed)")
            #expect(try other.objects(of: Item.self) == items, "REEL_SEED=\(seed)")
            #expect(try other.objects(of: Tag.self) == tags, "REEL_SEED=\(seed)")
            #expect(try other.orphans(of: \Item.folder) == orphans, "REEL_SEED=\(seed)")
        }
        let folderIDs = Set(folders.values.map(\.id))
        let itemIDs = Set(items.values.map(\.id))
        let lost = items.values.filter { $0.folder.map { !folderIDs.contains($0.id) } ?? false }
        #expect(orphans == Orphans(values: lost, isComplete: true), "REEL_SEED=\(seed)")
        #expect(
            origins.values == items.values.filter { $0.origin.map { !itemIDs.contains($0.id) } ?? false },
            "REEL_SEED=\(seed)"
        )
        for item in lost {
            guard let folder = item.folder?.id else { continue }
            let by = attachers[Attachment(item: item.id, folder: folder)] ?? []
            let deleters = deleters[ObjectName("folder", id: folder.text)] ?? []
            #expect(!deleters.isEmpty && !by.subtracting(deleters).isEmpty, "REEL_SEED=\(seed)")
        }
        for item in items.values {
            let present = try first.resolve(item.tags).values.map(\.id)
            #expect(present == tags.values.map(\.id).filter { item.tags.contains(Ref($0)) }, "REEL_SEED=\(seed)")
        }
    }
}
