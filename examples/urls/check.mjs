// A client of urls.sql, as check.py is:
//
//     node check.mjs FILTER < URLS     "safe URL", or "ask PATTERN URL" for each pattern

import { readFileSync } from 'node:fs';
import { BloomFilter } from '../../clients/javascript/src/index.js';

/** Host and the hosts above it, each with the path and the paths above it. */
function* patternsOf(url) {
  const { hostname, pathname } = new URL(url.toLowerCase());
  const hosts = hostname.split('.');
  const paths = pathname.split('/').filter(Boolean);
  for (let h = 0; h < Math.max(hosts.length - 1, 1); h++) {
    for (let p = 0; p <= paths.length; p++) {
      yield [hosts.slice(h).join('.'), ...paths.slice(0, p), ''].join('/');
    }
  }
}

const unsafe = await BloomFilter.fromBase64(readFileSync(process.argv[2], 'ascii').trim());
for (const url of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const maybe = [...patternsOf(url)].filter((pattern) => unsafe.has(pattern));
  for (const pattern of maybe) {
    console.log('ask', pattern, url);
  }
  if (maybe.length === 0) {
    console.log('safe', url);
  }
}
