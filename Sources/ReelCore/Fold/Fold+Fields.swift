// Single fields of an object, without a copy of the whole object.
extension Fold {
    /// Returns the canonical value of a field; nil if the object has no such field.
    /// - Parameter key: a key as returned by `key(ofObject:)`.
    package func value(of name: String, in key: [UInt8]) -> [UInt8]? {
        field(name, in: key).map { field in
            var value: [UInt8] = []
            field.writeValue(to: &value)
            return value
        }
    }

    /// Returns true if all edits of a field's text after `base` are of this site. The site's splices then mean the same
    /// with `base` as with the present seq.
    ///
    /// - Parameters:
    ///   - name: the name of the field.
    ///   - key: a key as returned by `key(ofObject:)`.
    ///   - site: the site whose edits do not count.
    ///   - base: the seq after which edits count.
    package func isEdited(_ name: String, in key: [UInt8], onlyBy site: Site, after base: Seq) -> Bool {
        guard let field = field(name, in: key), field.writer.seq > base else { return true }
        let viewer = TextViewer(site: site, base: base)
        switch field.value {
        case .plain: return viewer.sees(field.writer)
        case .text(let text): return text.written.map(viewer.sees) != false && text.isSettled(for: viewer)
        }
    }

    /// True if the object has not reached its limits when it grows by these bytes and fields, or does not exist.
    ///
    /// - Parameters:
    ///   - key: a key as returned by `key(ofObject:)`.
    ///   - bytes: the bytes by which the object grows.
    ///   - fields: the number of fields by which the object grows.
    package func hasRoom(_ key: [UInt8], bytes: Int, fields: Int) -> Bool {
        guard let object = folded(key), object.state == .alive else { return true }
        return object.size + bytes <= Limits.object && object.fields.count + fields <= Limits.fields
    }

    private func field(_ name: String, in key: [UInt8]) -> FoldedField? {
        guard let object = folded(key), object.state == .alive else { return nil }
        return JSONText.withEscaped(name) { object.field($0) }
    }
}

extension FoldDraft {
    /// An object of a draft at one moment, or the absence of one.
    package struct Saved: Sendable {
        fileprivate let object: FoldedObject?
    }

    /// Returns the object as it is now, for `restore`.
    package func saved(_ key: [UInt8]) -> Saved { Saved(object: fold.slot(key).map { fold.objects[$0] }) }

    /// Replaces an object with an earlier state of it.
    package mutating func restore(_ key: [UInt8], to saved: Saved) { place(saved.object, key) }

    /// Returns the canonical value of a field; nil if the object has no such field.
    package func value(of name: String, in key: [UInt8]) -> [UInt8]? { fold.value(of: name, in: key) }

    /// True if the object has not reached its limits when it grows by these bytes and fields, or does not exist.
    ///
    /// - Parameters:
    ///   - key: a key as returned by `Fold.key(ofObject:)`.
    ///   - bytes: the bytes by which the object grows.
    ///   - fields: the number of fields by which the object grows.
    package func hasRoom(_ key: [UInt8], bytes: Int, fields: Int) -> Bool {
        fold.hasRoom(key, bytes: bytes, fields: fields)
    }
}
