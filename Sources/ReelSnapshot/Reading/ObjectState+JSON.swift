import ReelCore

extension ObjectState {
    /// The object as the JSON of `GET …/objects/{model}/{id}`.
    var json: [UInt8] {
        var json: [UInt8] = []
        json.append(#"{"object":[""#)
        json += model
        json.append(#"",""#)
        json += id
        json.append(#""],"seq":"#)
        json.append(integer: seq)
        json.append(#","fields":{"#)
        for (index, field) in fields.enumerated() {
            json.append(index == 0 ? "\"" : ",\"")
            json += field.name
            json.append("\":[")
            json += field.value
            json.append(",")
            json.append(integer: field.seq)
            json.append("]")
        }
        json.append("}}")
        return json
    }
}
