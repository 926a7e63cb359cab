import { PLAYREADY_SYSTEM_ID } from '../playready';
import { COMMON_SYSTEM_ID } from '../pssh';
import { WIDEVINE_SYSTEM_ID } from '../widevine';

/** Protection systems by their id, as the DASH Industry Forum registers them. */
const SYSTEMS: Readonly<Record<string, string>> = {
  [WIDEVINE_SYSTEM_ID]: 'Widevine',
  [PLAYREADY_SYSTEM_ID]: 'PlayReady',
  [COMMON_SYSTEM_ID]: 'W3C common',
  '94ce86fb-07ff-4f43-adb8-93d2fa968ca2': 'FairPlay',
  'e2719d58-a985-b3c9-781a-b030af78d30e': 'ClearKey (DASH-IF)',
  '3ea8778f-7742-4bf9-b18b-e834b2acbd47': 'ClearKey AES-128',
  'be58615b-19c4-4684-88b3-c8c57e99e957': 'ClearKey SAMPLE-AES',
  '81376844-f976-481e-a84e-cc25d39b0b33': 'HLS AES-128 (SPEKE v1, not registered)',
  '29701fe4-3cc7-4a34-8c5b-ae90c7439a47': 'FairPlay (not registered)',
  'f239e769-efa3-4850-9c16-a903c6932efb': 'Adobe Primetime',
  '616c7469-6361-7374-2d50-726f74656374': 'Alticast',
  '279fe473-512c-48fe-ade8-d176fee6b40f': 'Arris Titanium',
  '3d5e6d35-9b9a-41e8-b843-dd3c6e72c42c': 'ChinaDRM',
  '644fe7b5-260f-4fad-949a-0762ffb054b4': 'CMLA (OMA DRM)',
  '37c33258-7b99-4c7e-b15d-19af74482154': 'Commscope Titanium V3',
  '45d481cb-8fe0-49c0-ada9-ab2d2455b2f2': 'CoreCrypt',
  'dcf4e3e3-62f1-5818-7ba6-0a6fe33ff3dd': 'DigiCAP SmartXess',
  '35bf197b-530e-42d7-8b65-1b4bf415070f': 'DivX DRM Series 5',
  '80a6be7e-1448-4c37-9e70-d5aebe04c8d2': 'Irdeto',
  '5e629af5-38da-4063-8977-97ffbd9902d4': 'Marlin',
  '6a99532d-869f-5922-9a91-113ab7b1e2f3': 'MobiTV DRM',
  'adb41c24-2dbf-4a6d-958b-4457c0d27b95': 'Nagra MediaAccess PRM 3.0',
  '1f83e1e8-6ee9-4f0d-ba2f-5ec4e3ed1a66': 'SecureMedia',
  '992c46e6-c437-4899-b6a0-50fa91ad0e39': 'SecureMedia SteelKnot',
  'a68129d3-575b-4f1a-9cba-3223846cf7c3': 'Synamedia VideoGuard',
  'aa11967f-cc01-4a4a-8e99-c5d3dddfea2d': 'Unitend DRM',
  '9a27dd82-fde2-4725-8cbc-4234aa06ec09': 'Verimatrix VCAS',
  'b4413586-c58c-ffb0-94a5-d4896c1af6c3': 'Viaccess-Orca',
  '793b7956-9f94-4946-a942-23e7ef7e44b4': 'VisionCrypt',
};

/** The name of a protection system, or undefined for one that isn't known. */
export function systemName(systemId: string): string | undefined {
  return Object.hasOwn(SYSTEMS, systemId) ? SYSTEMS[systemId] : undefined;
}
