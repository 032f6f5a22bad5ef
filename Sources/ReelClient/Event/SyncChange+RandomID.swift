extension SyncChange {
    /// Returns a change that makes an object with a random id: 128 bits as 26 letters and digits. The id is in `id`.
    ///
    ///     let list = SyncChange.insert("list", ["title": "Shop"])
    ///     try await todo.publish(.batch([list, .insert("task", ["list": .string(list.id)])]))
    ///
    /// No other device can have made the object before this insert is sent. So the insert and a later delete of the
    /// object cancel each other while both wait.
    public static func insert(_ model: String, _ fields: FieldMap<JSONValue> = [:]) -> SyncChange {
        var change = insert(model, id: randomID(), fields)
        change.hasRandomID = true
        return change
    }

    /// Returns 128 random bits in Crockford's base 32, which has no letters that look like digits.
    package static func randomID() -> String {
        let digits = Array("0123456789abcdefghjkmnpqrstvwxyz")
        var (high, low) = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        var id: [Character] = []
        for _ in 0..<26 {
            id.append(digits[Int(low & 31)])
            low = low >> 5 | high << 59
            high >>= 5
        }
        return String(id.reversed())
    }
}

extension SyncEvent {
    /// Returns an event that makes an object with a random id, as `SyncChange.insert(_:_:)` does. Read the id from
    /// `changes`.
    public static func insert(_ model: String, _ fields: FieldMap<JSONValue> = [:]) -> SyncEvent {
        SyncEvent(SyncChange.insert(model, fields))
    }
}
