extension CanonicalNumber {
    /// Appends the canonical form of a JSON number's literal.
    /// - Parameter place: the byte offset of the literal, for the error message.
    /// - Throws: `bad_number` if no double represents the number: it is too large, or an integer that would become
    ///   another one.
    static func append(canonical literal: Bytes, at place: Int, to output: inout [UInt8]) throws(ReelError) {
        let isNegative = literal.first == ASCII.minus
        let isInteger = literal.dropFirst(isNegative ? 1 : 0).allSatisfy { ASCII.digit($0) != nil }
        if isInteger, literal.count <= 15, !(isNegative && literal[1] == ASCII.zero) {
            output.append(contentsOf: literal)
            return
        }
        guard let value = value(of: literal) else { throw notRepresentable(literal, place) }
        let start = output.count
        output.append(number: value)
        guard isInteger, value.magnitude > Double(largestInteger) else { return }
        let digits = literal.dropFirst(isNegative ? 1 : 0)
        if output[start...].elementsEqual(literal) || digits.elementsEqual(exactDigits(value.magnitude)) { return }
        output.removeSubrange(start...)
        throw notRepresentable(literal, place)
    }

    private static func notRepresentable(_ literal: Bytes, _ place: Int) -> ReelError {
        let shown = String(decoding: literal.prefix(40), as: UTF8.self)
        return ReelError(
            .badNumber,
            "found \(shown)\(literal.count > 40 ? "…" : "") at byte \(place), which no double holds exactly: "
                + "write it as a string"
        )
    }

    /// Returns all decimal digits of a whole number that is at least 2^53.
    static func exactDigits(_ value: Double) -> [UInt8] {
        // The limbs have nine digits each, lowest limb first.
        let limb: UInt64 = 1_000_000_000
        var limbs: [UInt64] = []
        var rest = value.significandBitPattern | 1 << 52
        while rest > 0 {
            limbs.append(rest % limb)
            rest /= limb
        }
        var doublings = Int(value.exponent) - 52
        while doublings > 0 {
            let step = min(doublings, 29)
            doublings -= step
            var carry: UInt64 = 0
            for index in limbs.indices {
                let product = limbs[index] << UInt64(step) + carry
                limbs[index] = product % limb
                carry = product / limb
            }
            if carry > 0 { limbs.append(carry) }
        }
        var digits: [UInt8] = []
        for limb in limbs {
            var rest = limb
            for _ in 0..<9 {
                digits.append(ASCII.zero + UInt8(rest % 10))
                rest /= 10
            }
        }
        while digits.count > 1, digits.last == ASCII.zero { digits.removeLast() }
        return digits.reversed()
    }
}
