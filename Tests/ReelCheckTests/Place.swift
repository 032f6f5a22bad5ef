import Testing

@Suite struct ReelCheckPlace {}
