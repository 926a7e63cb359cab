import { PLAYREADY_SYSTEM_ID } from '../playready';
import { checkAddress } from './license-address';
import type { Report } from './report';
import { systemName } from './system-ids';

const MAX_ADDRESSES = 50;

/** `<dashif:Laurl>…</dashif:Laurl>`, `<ms:laurl licenseUrl="…"/>` and their like. */
const LAURL = /<(?:[\w-]{1,20}:)?laurl\b([^<>]{0,3000})>([^<]{0,3000})/gi;

/** Shows the license addresses in the ContentProtection elements of a manifest (DASH-IF IOP 7.6.2.4), each once. */
export function describeLicenseAddresses(report: Report, xml: string): void {
  const found = new Map<string, { systemId: string; address: string }>();
  for (const element of xml.split(/<(?:[\w-]{1,20}:)?ContentProtection\b/).slice(1)) {
    const start = element.indexOf('>');
    const attributes = element.slice(0, Math.max(start, 0));
    const end = element.search(/<\/(?:[\w-]{1,20}:)?ContentProtection\s*>/);
    if (attributes.endsWith('/') || end < 0) continue;
    const systemId = /urn:uuid:([0-9a-f-]{36})/i.exec(attributes)?.[1]?.toLowerCase() ?? '';
    for (const [, own = '', text = ''] of element.slice(start + 1, end).matchAll(LAURL)) {
      const address = unescaped((/\blicenseUrl\s*=\s*["']([^"']*)["']/i.exec(own)?.[1] ?? text).trim());
      if (address !== '') found.set(`${systemId} ${address}`, { systemId, address });
    }
  }
  [...found.values()].slice(0, MAX_ADDRESSES).forEach(({ systemId, address }, index) => {
    const name = found.size > 1 ? `laurl[${index}]` : 'laurl';
    checkAddress(report, name, 'playready', address, systemName(systemId));
    if (systemId === PLAYREADY_SYSTEM_ID)
      report.claim({ of: 'address', at: name, system: 'playready', address });
  });
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };

function unescaped(text: string): string {
  return text.replaceAll(/&(lt|gt|quot|apos|amp);/g, (all, name: string) => ENTITIES[name] ?? all);
}
