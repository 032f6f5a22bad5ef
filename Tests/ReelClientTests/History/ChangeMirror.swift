import ReelCore
import Testing

@testable import ReelClient

/// A part of an app that keeps the objects in a store of its own, as it has learned of them. In the tests that use it
/// the author of an object's value is its first letter: `o` for this device, `r` for another one.
struct ChangeMirror {
    var token: ChangeToken?
    var objects: [ObjectName: FieldMap<JSONValue>] = [:]
    var resets = 0
    /// The origins of all changes, by the first letter of the object's id.
    var origins: [Character: ObjectChange.Origin] = [:]

    /// Applies the changes since the last call, and checks them against what it had.
    mutating func follow(_ stream: SyncStream) async throws {
        let changes = try await stream.changes(since: token)
        if changes.isReset {
            resets += 1
            objects = [:]
            for object in try changes.snapshot.objects("m") { objects[object.name] = Self.values(object) }
        }
        for change in changes.objects {
            #expect(Self.old(change) == objects[change.name], "\(change.name)")
            #expect((objects[change.name] != nil) == (change.kind != .inserted))
            #expect((change.object != nil) == (change.kind != .deleted))
            expectRightOrigin(change)
            if let letter = change.name.id.first { origins[letter, default: []].formUnion(change.origin) }
            objects[change.name] = change.object.map(Self.values)
        }
        token = changes.token
        var expected: [ObjectName: FieldMap<JSONValue>] = [:]
        for object in try changes.snapshot.objects("m") { expected[object.name] = Self.values(object) }
        #expect(objects == expected)
    }

    /// Only this device writes the objects whose id begins with `o`, and only another one those with `r`.
    private func expectRightOrigin(_ change: ObjectChange) {
        let origin = change.origin
        #expect(!origin.isEmpty)
        if change.name.id.hasPrefix("o") { #expect(!origin.contains(.remote), "\(change)") }
        if change.name.id.hasPrefix("r") { #expect(origin.isDisjoint(with: [.own, .withdrawn]), "\(change)") }
        guard origin == .own else { return }
        for name in change.changed.names {
            guard let value = change.object?[name] else { continue }
            #expect(value.string?.hasPrefix("o") == true, "\(change)")
        }
    }

    /// Returns the object at the token, according to a change; nil if it did not exist.
    private static func old(_ change: ObjectChange) -> FieldMap<JSONValue>? {
        if change.kind == .inserted { return nil }
        var values = change.object.map(Self.values) ?? [:]
        for (name, old) in change.changed {
            switch old {
            case .absent: values[name] = nil
            case .value(let value): values[name] = value
            case .tooLong: Issue.record("too long")
            }
        }
        return values
    }

    private static func values(_ object: SyncObject) -> FieldMap<JSONValue> {
        var values: FieldMap<JSONValue> = [:]
        for (name, field) in object.fields { values[name] = field.value }
        return values
    }
}
