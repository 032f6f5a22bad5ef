import Reel
import ReelBase
import ReelClient
import ReelCore
import TestSupport
import Testing

// Random edits by all calls of `Dataset`.
extension TypedDevice {
    func edit(_ random: inout SeededNumbers) async throws {
        switch random.below(isLoading ? 8 : 26) {
        case 0...2: try await insert(&random)
        case 3: try await insertDefaults(&random)
        case 4...8: try await update(&random)
        case 9...11: try await save(&random)
        case 12: try await replace(&random)
        case 13: if random.oneIn(2) { try await delete(&random) }
        case 14...15: try await batch(&random)
        case 16...17: try await updateIfUnchanged(&random)
        case 18: try await move(&random)
        case 19: try await deleteFolder(&random)
        case 20: try await removeDeletedFolders()
        case 21: try await saveNothing()
        case 22...23: try await type(&random)
        default: try await editFolder(&random)
        }
        if random.oneIn(3), let item = try readable(id(&random)) { keep(item) }
    }

    /// Returns what the properties show after an edit of an older value was saved over a present one.
    private func merged(_ present: Item<B>?, _ original: Item<B>, _ edited: Item<B>) -> [Plain?] {
        guard let present else { return shape.properties.map { _ in nil } }
        return shape.properties.map { property in
            let property = property.property
            return property.merged(property.shown(present), property.shown(original), property.shown(edited))
        }
    }

    // MARK: Objects

    private func insert(_ random: inout SeededNumbers) async throws {
        let item = shape.item(random.pick(Self.ids), &random)
        let (present, isNew) = (try readable(item.id), try stored(item.id) == nil)
        let expected = zip(shape.properties, shape.shown(item)).map { property, value -> Plain? in
            if isNew || property.property.absent != value { return value }
            return present.map(property.property.shown)
        }
        try await write(.insert, item.id, expecting: expected) { [try await dataset.insert(item)] }
    }

    private func insertDefaults(_ random: inout SeededNumbers) async throws {
        let item = shape.item(random.pick(Self.ids), &random)
        let (present, fields) = (try readable(item.id), try stored(item.id) ?? [:])
        let expected = zip(shape.properties, shape.shown(item)).map { property, value -> Plain? in
            if property.stored(in: fields) == nil { return value }
            return present.map(property.property.shown)
        }
        try await write(.insertDefaults, item.id, expecting: expected) {
            let handles = try await dataset.insertDefaults(item)
            #expect(try await dataset.insertDefaults(item).isEmpty)
            return handles
        }
    }

    private func update(_ random: inout SeededNumbers) async throws {
        let (id, seed, shape) = (try id(&random), random.next(), shape)
        let present = try readable(id) ?? Item(id: id)
        try await write(.update, id, expecting: shape.shown(shape.changed(present, seed))) {
            [try await dataset.update(id) { shape.change(&$0, seed) }]
        }
    }

    private func save(_ random: inout SeededNumbers) async throws {
        guard let original = forms.randomElement(using: &random) else { return }
        let edited = shape.changed(original, random.next())
        let expected = merged(try readable(original.id), original, edited)
        try await write(.save, original.id, expecting: expected) {
            [try await dataset.save(edited, changedFrom: original)]
        }
    }

    private func replace(_ random: inout SeededNumbers) async throws {
        let id = try id(&random)
        var item = shape.item(id, &random)
        if !random.oneIn(3), let present = try readable(id) { item = shape.changed(present, random.next()) }
        try await write(.replace, id, expecting: shape.shown(item)) { [try await dataset.replace(item)] }
    }

    private func delete(_ random: inout SeededNumbers) async throws {
        let id = try id(&random)
        guard try stored(id) != nil else { return }
        keep([try await dataset.delete(id)])
        #expect(try stored(id) == nil)
    }

    private func batch(_ random: inout SeededNumbers) async throws {
        let (id, seeds, shape) = (try id(&random), (random.next(), random.next()), shape)
        var folder = Folder(id: random.folder().id)
        folder.name = random.text()
        let present = try readable(id) ?? Item(id: id)
        let expected = shape.shown(shape.changed(shape.changed(present, seeds.0), seeds.1))
        try await write(.batch, id, expecting: expected) { [folder] in
            let handle = try await dataset.batch { batch in
                try batch.insert(folder)
                try batch.update(id) { shape.change(&$0, seeds.0) }
                try batch.update(id) { shape.change(&$0, seeds.1) }
            }
            #expect(try dataset.object(folder.id)?.name == folder.name)
            return [handle]
        }
    }

    private func updateIfUnchanged(_ random: inout SeededNumbers) async throws {
        guard let original = forms.randomElement(using: &random),
            let property = shape.properties.randomElement(using: &random)?.property
        else { return }
        let (id, seed, shape) = (original.id, random.next(), shape)
        let condition = Condition.unchanged(property.keyPath, since: original)
        let present = try readable(id) ?? original
        let isUnchanged = property.shown(present) == property.shown(original)
        try await write(.updateIfUnchanged, id, expecting: shape.shown(shape.changed(present, seed))) {
            let handle = try await dataset.update(id, if: condition) { shape.change(&$0, seed) }
            #expect(isUnchanged || handle.event.changes.isEmpty)
            return [handle]
        }
    }

    private func move(_ random: inout SeededNumbers) async throws {
        guard let property = shape.properties.first(where: { $0.property.name == "rank" }) else { return }
        let items = try dataset.objects(of: Item<B>.self).values.sorted { $0.rank < $1.rank }
        guard let item = items.randomElement(using: &random) else { return }
        let index = random.below(items.count + 1)
        let (lower, upper) = (index > 0 ? items[index - 1] : nil, index < items.count ? items[index] : nil)
        let expected = shape.properties.map { $0.name == property.name ? nil : $0.property.shown(item) }
        try await write(.move, item.id, expecting: expected) {
            [try await dataset.move(item.id, between: lower?.id, and: upper?.id)]
        }
        let rank = try #require(try dataset.object(item.id)).rank
        if let lower { #expect(lower.rank < rank) }
        if let upper, lower.map({ $0.rank < upper.rank }) ?? true { #expect(rank < upper.rank) }
    }

    // MARK: Relations

    private func editFolder(_ random: inout SeededNumbers) async throws {
        var folder = Folder(id: random.folder().id)
        folder.parent = random.oneIn(3) ? nil : random.folder()
        let isDeleted = random.oneIn(9)
        do {
            keep([try await isDeleted ? dataset.delete(folder.id) : dataset.replace(folder)])
            #expect(try dataset.object(folder.id) == (isDeleted ? nil : folder))
        } catch let error as ReelError where [.noObject, .deleted].contains(error.code) {
            #expect(try dataset.object(folder.id) == nil)
        }
    }

    private func deleteFolder(_ random: inout SeededNumbers) async throws {
        let id = random.folder().id
        guard try dataset.object(id) != nil, shape.properties.contains(where: { $0.property.name == "folder" }) else {
            return
        }
        let writes = try await dataset.delete(id, cascading: \Item<B>.folder, \Folder.parent)
        keep(writes.handles)
        #expect(try dataset.object(id) == nil)
        #expect(try !dataset.objects(of: Item<B>.self).values.contains { $0.folder?.id == id })
        #expect(try !dataset.objects(of: Folder.self).values.contains { $0.parent?.id == id })
        #expect(writes.problems.allSatisfy { $0.kind == .missingConstant })
    }

    private func removeDeletedFolders() async throws {
        guard shape.properties.contains(where: { $0.property.name == "folders" }) else { return }
        keep(try await dataset.removeDeletedTargets(from: \Item<B>.folders).handles)
        #expect(try await dataset.removeDeletedTargets(from: \Item<B>.folders).handles.isEmpty)
    }

    // MARK: Drafts

    /// Types into the draft of a text, which stays open.
    private func type(_ random: inout SeededNumbers) async throws {
        guard shape.properties.contains(where: { $0.property.name == "note" && $0.property.absent != nil }) else {
            return
        }
        let id = try id(&random)
        if draft == nil, try readable(id) != nil { draft = (try dataset.draft(of: id, \.note), id) }
        guard let (text, id) = draft else { return }
        while text.takeRemoteChange() != nil {}
        let count = text.text.utf16.count
        let start = random.below(count + 1)
        do {
            try text.replace(utf16: start..<min(count, start + random.below(3)), with: random.text())
        } catch let error as ReelError where error.code == .range {
            // The range splits the two halves of a surrogate pair.
        }
        do {
            try await text.flush()
        } catch let error as ReelError where [.deleted, .noObject].contains(error.code) {
            draft = nil
            return
        }
        while text.takeRemoteChange() != nil {}
        guard let item = try readable(id) else { return }
        #expect(text.text.utf8.elementsEqual(item.note.utf8), "\(place): the draft of \(id)")
    }
}
