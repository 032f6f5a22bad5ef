internal import ReelCore

extension SyncEvent {
    /// Checks the numbers and the depth of the event, so that no value is too deep for the encoder.
    ///
    /// Throws `bad_number` for a number that the log cannot hold. It is not finite, or an integer that no double holds
    /// exactly, or an offset or seq beyond 2^53 − 1. Throws `bad_json` below the deepest level that an event may have.
    func checkNumbers() throws(ReelError) {
        for (index, change) in changes.enumerated() {
            let place = isBatch ? "events[\(index)]." : ""
            for (name, value) in change.fields { try value.checkNumbers { "\(place)fields.\(name)" } }
            for (name, operation) in change.operations { try operation.checkNumbers { "\(place)ops.\(name)" } }
            for (name, seq) in change.guards { try checkInteger(seq) { "\(place)if.\(name)" } }
        }
    }
}

extension FieldOperation {
    fileprivate func checkNumbers(_ place: () -> String) throws(ReelError) {
        switch self {
        case .increment(let amount): try JSONValue.number(amount).checkNumbers { place() + ".inc" }
        case .change(let add, let remove):
            try JSONValue.array(add).checkNumbers { place() + ".add" }
            try JSONValue.array(remove).checkNumbers { place() + ".remove" }
        case .splice(let splices):
            for splice in splices {
                try checkInteger(splice.offset) { place() + ".splice" }
                try checkInteger(splice.removed) { place() + ".splice" }
            }
        }
    }
}

extension JSONValue {
    fileprivate func checkNumbers(levels: Int = Limits.depth, _ place: () -> String) throws(ReelError) {
        switch self {
        case .null, .bool, .string: break
        case .number(let number):
            guard number.isFinite else {
                throw ReelError(.badNumber, "found \(number) in \(place()), expected a finite number")
            }
        case .integer(let integer):
            guard Double(exactly: integer) != nil else {
                throw ReelError(
                    .badNumber,
                    "found \(integer) in \(place()), which no double holds exactly: write it as a string"
                )
            }
        case .array(let values):
            try checkLevels(levels, place)
            for (index, value) in values.enumerated() {
                try value.checkNumbers(levels: levels - 1) { "\(place())[\(index)]" }
            }
        case .object(let members):
            try checkLevels(levels, place)
            for (name, value) in members { try value.checkNumbers(levels: levels - 1) { "\(place()).\(name)" } }
        }
    }

    private func checkLevels(_ levels: Int, _ place: () -> String) throws(ReelError) {
        guard levels > 0 else {
            let place = String(place().prefix(80))
            throw ReelError(.badJSON, "found more than \(Limits.depth) levels of objects and arrays in \(place)…")
        }
    }
}

/// Throws `bad_number` if a seq, an offset or a count is beyond what the log can hold. The event's parser checks the
/// lower bounds.
private func checkInteger(_ integer: Int64, _ place: () -> String) throws(ReelError) {
    guard integer.magnitude <= largestInteger else {
        throw ReelError(.badNumber, "found \(integer) in \(place()), expected at most 2^53 − 1")
    }
}
