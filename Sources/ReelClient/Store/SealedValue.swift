internal import ReelCore

/// A value of the store with a hash of its key and its content, so that a damaged pair is found when it is read. The
/// hash is FNV-1a with MurmurHash3's finalizer, as for the lines of a digest, in the first eight bytes.
enum SealedValue {
    private static let hashBytes = 8

    /// Returns the stored form of a value.
    ///
    /// - Parameters:
    ///   - key: the key of the value.
    ///   - count: the expected size of the content in bytes.
    ///   - write: appends the content.
    static func seal(for key: [UInt8], count: Int, _ write: (inout [UInt8]) -> Void) -> [UInt8] {
        var value = [UInt8]()
        value.reserveCapacity(hashBytes + count)
        value.append(contentsOf: repeatElement(0, count: hashBytes))
        write(&value)
        value.withUnsafeMutableBytes { value in
            let hash = key.withUnsafeBytes { self.hash(Bytes(rebasing: value[hashBytes...]), $0) }
            value.storeBytes(of: hash.littleEndian, as: UInt64.self)
        }
        return value
    }

    /// Returns the content of a stored value; nil if the pair is damaged.
    static func open(_ value: Bytes, for key: Bytes) -> Bytes? {
        guard value.count >= hashBytes else { return nil }
        let content = Bytes(rebasing: value[hashBytes...])
        let found = UInt64(littleEndian: value.loadUnaligned(as: UInt64.self))
        return found == hash(content, key) ? content : nil
    }

    private static func hash(_ content: Bytes, _ key: Bytes) -> UInt64 {
        var hash = FNV1a()
        hash.add(key)
        hash.add(content)
        return hash.finished
    }
}

extension RowReader {
    /// Reads a text in UTF-8; nil for an absent one.
    mutating func optionalText() throws(ReelError) -> String? {
        try flag() ? String(decoding: try data(), as: UTF8.self) : nil
    }

    mutating func text() throws(ReelError) -> String { String(decoding: try data(), as: UTF8.self) }
}

extension RowWriter {
    /// Writes a text in UTF-8 that may be absent.
    mutating func write(_ text: String?) {
        write(text != nil)
        if let text { write(Array(text.utf8)) }
    }
}

extension StorageChanges {
    /// Adds a change that sets a sealed value.
    mutating func seal(_ content: [UInt8], for key: [UInt8]) {
        put(key, SealedValue.seal(for: key, count: content.count) { $0 += content })
    }

    /// Adds a change that sets the sealed row of an object.
    mutating func seal(_ object: StoredObject, for key: [UInt8]) {
        put(key, SealedValue.seal(for: key, count: object.count) { object.write(to: &$0) })
    }
}

extension StorageSnapshot {
    /// Calls `body` with the content of a sealed value. Returns nil if the key is absent. Throws `store_damaged` if the
    /// pair is damaged or `body` cannot read it.
    func sealed<T>(_ key: [UInt8], _ body: (Bytes) throws(ReelError) -> T) throws(ReelError) -> T? {
        guard let value = try value(for: key) else { return nil }
        let result: Result<T, ReelError> = value.withUnsafeBytes { value in
            key.withUnsafeBytes { key in
                guard let content = SealedValue.open(value, for: key) else { return .failure(.damagedStore(key)) }
                do throws(ReelError) {
                    return .success(try body(content))
                } catch {
                    return .failure(.damagedStore(key))
                }
            }
        }
        return try result.get()
    }
}

extension ReelError {
    /// Creates the error for a pair of the store that no client has written.
    static func damagedStore(_ key: Bytes) -> ReelError {
        let name = key.prefix(48).map { (0x20..<0x7F).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
        return ReelError(
            .storeDamaged,
            "the device's store: found a damaged value of \(name.debugDescription), expected what was written; move the"
                + " store away, and do not delete it"
        )
    }

    static func lostRows(_ rows: String, found: Int, expected: Int) -> ReelError {
        ReelError(
            .storeDamaged,
            "the device's store: found \(found) \(rows), expected \(expected): rows are lost; move the store away, and"
                + " do not delete it"
        )
    }
}
