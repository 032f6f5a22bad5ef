import Reel
import ReelClient
import ReelCore
import ReelTesting
import Synchronization
import TestSupport
import Testing

/// A device that runs some build of the app.
protocol RandomDevice: AnyObject {
    /// Makes one random edit.
    func edit(_ random: inout SeededNumbers) async throws

    /// Makes edits that change nothing. They must not queue an event.
    func saveNothing() async throws

    /// Compares everything that the device shows with the checker's fold.
    func check(_ fold: CheckedFold) async throws
}

/// A call of `Dataset` that writes an object.
enum Call: String {
    case insert, insertDefaults, update, updateIfUnchanged, save, replace, move, batch

    /// True if a field stays as it is stored, also with a value that the build does not know, if its property shows the
    /// same after the write. The others write such a field again.
    var keepsFields: Bool { ![.insert, .save, .batch].contains(self) }

    /// True if elements of a set that the build does not know stay.
    var keepsElements: Bool { ![.insert, .replace].contains(self) }
}

/// A device that runs the build `B`.
final class TypedDevice<B: Build>: RandomDevice {
    /// The seed of the run and the name of the device, for messages.
    let place: String
    private let name: String
    let dataset: Dataset
    let shape: Shape<B>
    /// The handles of all events since the start of the process.
    private var handles: [PublishHandle]
    /// Values from which later edits are saved, as in forms that stay open.
    private(set) var forms: [Item<B>] = []
    /// The draft of the text of an object.
    var draft: (text: TextDraft, id: Item<B>.ID)?

    init(_ device: TestDevice, seed: UInt64) async throws {
        name = device.name
        place = "REEL_SEED=\(seed), \(name)"
        dataset = try await device.client.open("todo", models: [Item<B>.self, Folder.self])
        shape = B.shape.withLock { $0 }
        handles = await dataset.stream.pending()
    }

    var pendingCount: Int { dataset.stream.status.pendingCount }

    /// True while the first state arrives. A write counts on own objects only then, but reading shows others already.
    var isLoading: Bool {
        if case .loading = dataset.stream.status.content { true } else { false }
    }

    /// The ids that objects can have.
    static var ids: [Item<B>.ID] { (0..<8).map { ModelID("\($0)") } }

    /// Returns the id of an object, seldom of one that does not exist.
    func id(_ random: inout SeededNumbers) throws -> Item<B>.ID {
        let names = try dataset.stream.objects("item").map(\.name.id)
        if !random.oneIn(8), let name = names.randomElement(using: &random) { return ModelID(name) }
        return random.pick(Self.ids)
    }

    func keep(_ new: [PublishHandle]) { handles += new }

    func keep(_ form: Item<B>) { forms = forms.suffix(2) + [form] }

    // MARK: Checks of single edits

    /// Returns an object; nil if it does not exist, or cannot be read.
    func readable(_ id: Item<B>.ID) throws -> Item<B>? {
        do { return try dataset.object(id) } catch is ModelProblem { return nil }
    }

    /// Returns the stored fields of an object; nil if it does not exist.
    func stored(_ id: Item<B>.ID) throws -> [String: Plain]? {
        try dataset.stream.object("item", id: id.text).map { object in
            Dictionary(uniqueKeysWithValues: object.fields.map { ($0.name, Plain($0.value.value)) })
        }
    }

    /// Writes an object, and compares what the device shows after it. Fields that the build does not know must stay.
    ///
    /// - Parameters:
    ///   - call: the call that makes the write.
    ///   - id: the id of the object.
    ///   - expected: what the properties show after the write; nil: the test does not know.
    ///   - body: makes the write.
    func write(
        _ call: Call,
        _ id: Item<B>.ID,
        expecting expected: [Plain?],
        _ body: () async throws -> [PublishHandle]
    ) async throws {
        let (before, count, old) = (try stored(id), pendingCount, try readable(id))
        do {
            keep(try await body())
        } catch let error as ReelError where [.noObject, .deleted, .guard].contains(error.code) {
            // The write does not fit the object any more.
            return try expectNothing(call, id, before, count)
        } catch let error as ModelProblem where [.missingConstant, .changedConstant].contains(error.kind) {
            // Another build has inserted the object.
            return try expectNothing(call, id, before, count)
        }
        if isLoading { return }
        let after = try #require(try stored(id), "\(place): \(call) \(id)")
        for (field, value) in before ?? [:] where !shape.names.contains(field) {
            #expect(after[field] == value, "\(place): \(call) has changed \(id).\(field)")
        }
        guard let item = try readable(id) else { return #expect(expected.allSatisfy { $0 == nil }) }
        for (property, expected) in zip(shape.properties, expected) {
            let (found, name) = (property.property.shown(item), property.name)
            if let expected { #expect(found == expected, "\(place): \(call) \(id).\(name)") }
            guard let old, let was = property.stored(in: before ?? [:]) else { continue }
            let now = property.stored(in: after) ?? .absent
            // Two spellings of one element are one element of a set, but a replacement writes the given one.
            let isSpelled = call == .replace && property.property.absent == .set([])
            if call.keepsFields, !isSpelled, found == property.property.shown(old) {
                #expect(now == was, "\(place): \(call) has written \(id).\(name)")
            }
            if call.keepsElements {
                #expect(property.property.keepsUnknown(was, now), "\(place): \(call) has lost a part of \(id).\(name)")
            }
        }
    }

    private func expectNothing(_ call: Call, _ id: Item<B>.ID, _ before: [String: Plain]?, _ count: Int) throws {
        #expect(try stored(id) == before && pendingCount == count, "\(place): \(call) \(id) has failed")
    }

    // MARK: Checks of the whole state

    func saveNothing() async throws {
        for item in try dataset.objects(of: Item<B>.self).values {
            let (count, before) = (pendingCount, try stored(item.id))
            let writes = [
                try await dataset.save(item, changedFrom: item),
                try await dataset.update(item.id) { (_: inout Item<B>) in },
                try await dataset.replace(item),
                try await dataset.batch { try $0.update(item.id) { (item: inout Item<B>) in item.votes += 0 } },
            ]
            for write in writes {
                #expect(write.event.changes.isEmpty, "\(place): \(write.event)")
                #expect(try await write.outcome() == .superseded)
            }
            #expect(try stored(item.id) == before && pendingCount == count)
        }
    }

    func check(_ fold: CheckedFold) async throws {
        let digest = try #require(await dataset.stream.digest())
        #expect(Hex64.text(digest) == fold.digest, "\(place)")
        try checkItems(fold)
        try checkFolders(fold)
        try await checkDeleted(fold)
        try await checkOutcomes(fold)
        try await checkDraft()
    }

    private func checkItems(_ fold: CheckedFold) throws {
        let (objects, stored) = (try dataset.objects(of: Item<B>.self), fold.objects["item"] ?? [:])
        #expect((objects.values.map(\.id.text) + objects.problems.map(\.object.id)).sorted() == stored.keys.sorted())
        for (id, fields) in stored {
            let isReadable = shape.properties.allSatisfy { !$0.property.isRequired || $0.stored(in: fields) != nil }
            guard let item = objects.values.first(where: { $0.id.text == id }) else {
                #expect(!isReadable && objects.problems.contains { $0.object.id == id && $0.kind == .missingConstant })
                continue
            }
            #expect(isReadable)
            for (property, found) in zip(shape.properties, shape.shown(item)) {
                let expected = property.stored(in: fields).flatMap(property.property.expected)
                #expect(
                    found == expected ?? property.property.shown(Item(id: item.id)),
                    "\(place): \(id).\(property.name)"
                )
            }
        }
    }

    private func checkFolders(_ fold: CheckedFold) throws {
        let folders = try dataset.objects(of: Folder.self)
        let stored = fold.objects["folder"] ?? [:]
        #expect(folders.problems.isEmpty && folders.values.map(\.id.text) == stored.keys.sorted())
        for folder in folders.values {
            let fields = try #require(stored[folder.id.text])
            #expect(
                fields["name"] ?? .text([]) == folder.name.plain && fields["parent"] ?? .absent == folder.parent.plain
            )
        }
    }

    /// Checks that the device tells deleted objects from those that never existed.
    private func checkDeleted(_ fold: CheckedFold) async throws {
        for id in Self.ids where fold.objects["item"]?[id.text] == nil {
            let error = await #expect(throws: ReelError.self) { try await dataset.update(id) { $0.votes += 1 } }
            #expect(error?.code == (fold.deleted["item"]?.contains(id.text) == true ? .deleted : .noObject))
        }
    }

    /// Compares the outcomes that the device has told its app.
    private func checkOutcomes(_ fold: CheckedFold) async throws {
        for handle in handles {
            let outcome = try await handle.outcome()
            let isRight =
                switch outcome {
                case .superseded: true
                case .applied(let seq): fold.outcomes[seq] == CheckedFold.Outcome("applied", name)
                case .rejected(let code, let seq):
                    fold.outcomes[seq] == CheckedFold.Outcome("rejected(\(code.rawValue))", name)
                case .consumed(let seq): seq.map { fold.outcomes[$0]?.device == name } ?? true
                // The device does not send an event that no device can apply any more.
                case .failed(let error): error.code == .deleted && handle.event.changes.contains(where: fold.isDeleted)
                case .unknown: false
                }
            #expect(isRight, "\(place): \(outcome) of \(handle.event)")
        }
        handles = []
    }

    private func checkDraft() async throws {
        guard let (text, id) = draft else { return }
        try await eventually("the draft shows the text") {
            while text.takeRemoteChange() != nil {}
            guard let item = try readable(id) else { return true }
            return text.text.utf8.elementsEqual(item.note.utf8)
        }
    }
}
