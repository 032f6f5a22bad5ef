internal import ReelCore

/// The change of an object in one turn, as a history keeps it.
struct ChangeRecord: Equatable {
    /// The bytes of JSON above which an old value is not kept.
    static let oldValueMax = 1_024

    var key: Overlay.Key
    var existed: Bool
    var exists: Bool
    var origin: ObjectChange.Origin
    /// The values of the changed fields before the turn. All fields for an object that was deleted, and none for one
    /// that was inserted.
    var old: FieldMap<ObjectChange.OldValue> = [:]

    /// Compares an object before and after a turn. Returns nil if it looks the same.
    init?(_ key: Overlay.Key, from old: SyncObject?, to new: SyncObject?, _ origin: ObjectChange.Origin) {
        (self.key, self.existed, self.exists, self.origin) = (key, old != nil, new != nil, origin)
        if let old {
            for (name, field) in old.fields where new?.fields[name]?.value != field.value {
                self.old[name] = Self.old(field.value)
            }
            for name in new?.fields.names ?? [] where old.fields[name] == nil { self.old[name] = .absent }
            if new != nil, self.old.isEmpty { return nil }
        } else if new == nil {
            return nil
        }
    }

    private static func old(_ value: JSONValue) -> ObjectChange.OldValue {
        var bytes: [UInt8] = []
        value.write(to: &bytes)
        return bytes.count > oldValueMax ? .tooLong : .value(value)
    }
}

extension ChangeRecord {
    /// Reads the records of a row, after its tag.
    static func records(in row: inout RowReader) throws(ReelError) -> [ChangeRecord] {
        var records: [ChangeRecord] = []
        for _ in 0..<(try row.count()) { records.append(try ChangeRecord(&row)) }
        try row.end()
        return records
    }

    private init(_ row: inout RowReader) throws(ReelError) {
        key = Array(try row.data())
        (existed, exists) = (try row.flag(), try row.flag())
        origin = ObjectChange.Origin(rawValue: Int(clamping: try row.number()))
        for _ in 0..<(try row.count()) {
            let name: String = try row.text()
            switch try row.number() {
            case 0: old[name] = .absent
            case 1:
                guard let value = JSONValue(parsing: try row.data()) else { throw row.damaged("a value") }
                old[name] = .value(value)
            case 2: old[name] = .tooLong
            default: throw row.damaged("an old value")
            }
        }
    }

    /// Returns the content of a row with these records.
    static func content(of records: some Collection<ChangeRecord>) -> [UInt8] {
        var row = RowWriter([])
        row.write(Int64(records.count))
        for record in records { record.write(to: &row) }
        return row.bytes
    }

    private func write(to row: inout RowWriter) {
        row.write(key)
        row.write(existed)
        row.write(exists)
        row.write(Int64(origin.rawValue))
        row.write(Int64(old.count))
        for (name, value) in old {
            row.write(Array(name.utf8))
            switch value {
            case .absent: row.write(Int64(0))
            case .value(let value):
                var bytes: [UInt8] = []
                value.write(to: &bytes)
                row.write(Int64(1))
                row.write(bytes)
            case .tooLong: row.write(Int64(2))
            }
        }
    }
}
