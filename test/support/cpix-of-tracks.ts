/** A document with a key for each quality, and nothing of DRM systems but their names. */
export const CPIX_OF_TRACKS = `<?xml version="1.0" encoding="UTF-8"?>
<CPIX xmlns="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc" version="2.3">
  <ContentKeyList>
    <ContentKey kid="44da52ef-4523-098e-6854-777ee322681d">
      <Data><pskc:Secret><pskc:PlainValue>lnA03mLuxnL3toiRMxV4Zw==</pskc:PlainValue></pskc:Secret></Data>
    </ContentKey>
    <ContentKey kid="a8c4ee9a-4cf9-76b8-1bba-c598f9f8b92c">
      <Data><pskc:Secret><pskc:PlainValue>ETweRxyDIuDqAadsWdx0HQ==</pskc:PlainValue></pskc:Secret></Data>
    </ContentKey>
  </ContentKeyList>
  <DRMSystemList>
    <DRMSystem kid="44da52ef-4523-098e-6854-777ee322681d" systemId="edef8ba9-79d6-4ace-a3c8-27dcd51d21ed">
      <PSSH>AAAATHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAACwiJGQ3YTI5OTU2LTI5ODAtNDMzOC1iNjI3LTg3YzFmMDc5ZTA5MUjj3JWbBg==</PSSH>
    </DRMSystem>
    <DRMSystem kid="a8c4ee9a-4cf9-76b8-1bba-c598f9f8b92c" systemId="edef8ba9-79d6-4ace-a3c8-27dcd51d21ed">
      <PSSH>AAAANXBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAABUiDXNvbWVjb250ZW50aWRI49yVmwY=</PSSH>
    </DRMSystem>
  </DRMSystemList>
  <ContentKeyUsageRuleList>
    <ContentKeyUsageRule kid="44da52ef-4523-098e-6854-777ee322681d" intendedTrackType="SD"/>
    <ContentKeyUsageRule kid="a8c4ee9a-4cf9-76b8-1bba-c598f9f8b92c" intendedTrackType="HD"/>
  </ContentKeyUsageRuleList>
</CPIX>
`;
