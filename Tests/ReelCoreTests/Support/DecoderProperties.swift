import ReelCore

/// The properties that the decoders must have for all bytes. Each function returns a description of the violation, or
/// nil if the property holds. The tests check mutations of a corpus. libFuzzer (Tests/Fuzz) checks the inputs that it
/// finds.
enum DecoderProperties {
    /// Canonical JSON: the strict reader accepts exactly the bytes that the writer leaves unchanged, and the writer is
    /// idempotent.
    static func json(_ bytes: Bytes) -> String? {
        let isCanonical = (try? CanonicalJSON.check(bytes)) != nil
        var output: [UInt8] = []
        do throws(ReelError) {
            try CanonicalJSON.canonicalize(bytes, into: &output)
        } catch {
            return isCanonical ? "canonical, yet refused: \(error.message)" : nil
        }
        return output.withUnsafeBytes { made in
            if isCanonical, !made.equals(bytes) { return "canonical, yet changed" }
            if !isCanonical, made.equals(bytes) { return "unchanged, yet not canonical" }
            if (try? CanonicalJSON.check(made)) == nil { return "made canonical, yet it is not" }
            var again: [UInt8] = []
            try? CanonicalJSON.canonicalize(made, into: &again)
            return again == output ? nil : "made canonical twice, and another"
        }
    }

    /// Events: the parser accepts only canonical JSON and returns slices inside the value. The intake writes only valid
    /// events.
    static func event(_ bytes: Bytes) -> String? {
        var event = ParsedEvent()
        if (try? event.parse(bytes)) != nil {
            if (try? CanonicalJSON.check(bytes)) == nil { return "an event that is not canonical" }
            if let fault = slices(of: event, in: bytes) { return fault }
        }
        var rules = PartitionRules(partition: 0, of: 1)
        for key in ["todo", "~reel"] {
            Array(key.utf8).withUnsafeBytes { _ = rules.read(key: $0, value: bytes, into: &event) }
        }
        var intake = EventIntake(limit: 4_096)
        var value: [UInt8] = []
        let stamp = EventIntake.Stamp(by: "ann", atMs: 1, base: 2)
        guard (try? intake.take(bytes, stamp: stamp, into: &value)) != nil else {
            return value.isEmpty ? nil : "refused, yet written"
        }
        return value.withUnsafeBytes { value in
            if (try? event.parse(value)) == nil { return "taken in, yet no event" }
            guard let author = EventIntake.author(of: bytes) else { return "taken in, yet without an author" }
            return author == (event.site, event.op) ? nil : "taken in under another author"
        }
    }

    private static func slices(of event: ParsedEvent, in bytes: Bytes) -> String? {
        var slices = event.fields.flatMap { [$0.name, $0.value] } + event.elements
        slices += event.triples.map(\.text) + event.guards.map(\.name) + event.operations.map(\.name)
        for part in event.parts { slices += [part.model, part.id] }
        if let by = event.by { slices.append(by) }
        let inside = slices.allSatisfy { $0.start > 0 && $0.count >= 0 && Int($0.start + $0.count) < bytes.count }
        return inside ? nil : "slices beyond the value"
    }

    /// Frames: decoding an encoded frame returns the same frame.
    static func frame(_ bytes: Bytes) -> String? {
        if let frame = try? ClientFrame(bytes) {
            let again = try? frame.encoded().withUnsafeBytes { try ClientFrame($0) }
            if again != frame { return "a client's frame that is read otherwise once written" }
        }
        if let frame = try? ServerFrame(bytes) {
            let again = try? frame.encoded().withUnsafeBytes { try ServerFrame($0) }
            if again != frame { return "a gateway's frame that is read otherwise once written" }
        }
        return nil
    }
}
