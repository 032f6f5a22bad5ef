import ReelCore

@testable import ReelClient

// A fast typist, while other edits of the same device are rejected.
extension SimulatedDevice {
    /// The text that the typist edits.
    private struct Place {
        let stream: StreamName
        let page: String
        let field: String
    }

    /// Types into one text after another.
    func type() {
        guard world.isWorking else { return }
        let place = Place(
            stream: streams[Int(process.pick(0...Int64(streams.count - 1)))],
            page: process.chance(60) ? "one" : "two",
            field: process.chance(70) ? "text" : "body"
        )
        letters(Int(process.pick(3...25)), to: place, paceMs: process.pick(5...80))
    }

    private func letters(_ left: Int, to place: Place, paceMs: Int64) {
        guard world.isWorking else { return }
        guard left > 0, client != nil else {
            process.after(process.pick(500...9_000)) { [self] in type() }
            return
        }
        if process.chance(8) { publishWhatMayBeRejected(beside: place) }
        letter(to: place)
        process.after(paceMs) { [self] in letters(left - 1, to: place, paceMs: paceMs) }
    }

    private func text(of place: Place) -> String { "\(name) \(place.stream) \(place.page) \(place.field)" }

    private func letter(to place: Place) {
        guard let client else { return }
        let page = client.assumeIsolated { $0.object("page", place.page, of: place.stream) }
        guard let page else {
            publish(
                SyncEvent(.insert("page", id: place.page, ["title": .string(newMark())])),
                to: place.stream,
                token: nil
            )
            return
        }
        let length = Int64(page[place.field]?.string?.unicodeScalars.count ?? 0)
        let token = world.newLetter()
        world.typed(token, into: text(of: place))
        let splice = TextSplice(
            at: process.chance(70) ? length : process.pick(0...length),
            removing: 0,
            inserting: token
        )
        publish(
            SyncEvent(.update("page", id: place.page, operations: [place.field: .splice([splice])])),
            to: place.stream,
            base: page.readAt,
            token: token
        )
    }

    /// Publishes an event that may be rejected: an edit of another field or object that other devices may have made
    /// invalid, or a text that replaces the typed one.
    private func publishWhatMayBeRejected(beside place: Place) {
        guard let client else { return }
        let items = client.assumeIsolated { $0.objects("item", of: place.stream) }.map(\.name.id)
        let item = items.isEmpty ? nil : items[Int(process.pick(0...Int64(items.count - 1)))]
        let page = client.assumeIsolated { $0.object("page", place.page, of: place.stream) }
        switch process.pick(0...9) {
        case 0..<5:
            guard let item else { return }
            publish(SyncEvent(.update("item", id: item, ["by": .string(name)])), to: place.stream, token: nil)
        case 5..<7:
            guard let item, let page else { return }
            let splice = TextSplice(
                at: Int64(page["body"]?.string?.unicodeScalars.count ?? 0),
                removing: 0,
                inserting: "b"
            )
            let token = "tok:\(newMark()):"
            publish(
                SyncEvent(
                    batch: [
                        .update("item", id: item, ["by": .string(token)]),
                        .update("page", id: place.page, operations: ["body": .splice([splice])]),
                    ]
                ),
                to: place.stream,
                base: page.readAt,
                token: token
            )
        case 7..<9:
            let seq = client.assumeIsolated { $0.confirmed("page", place.page, of: place.stream) }?.fields["title"]?.seq
            guard page != nil else { return }
            let event = SyncEvent(
                .update("page", id: place.page, ["title": .string(newMark())]).guarded(["title": seq ?? -1])
            )
            publish(event, to: place.stream, token: nil)
        default:
            guard page != nil else { return }
            world.replaced(text(of: place))
            publish(
                SyncEvent(.update("page", id: place.page, [place.field: .string("new")])),
                to: place.stream,
                token: nil
            )
        }
    }
}
