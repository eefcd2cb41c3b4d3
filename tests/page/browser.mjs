// browser.mjs - a page in Chromium that counts what must not happen: errors,
// violations of the policy, requests that leave.
import puppeteer from 'puppeteer-core';

export const CHROMIUM = process.env.AGENTWAL_CHROMIUM || '/usr/bin/chromium';

export async function openBrowser() {
  return puppeteer.launch({
    executablePath: CHROMIUM,
    args: ['--headless=new', '--no-sandbox', '--disable-gpu', '--font-render-hinting=none',
      '--disable-lcd-text'],
  });
}

export async function openPage(browser, url, options = {}) {
  const page = await browser.newPage();
  const faults = [];
  await page.setViewport({ width: options.width || 1400, height: options.height || 900,
    deviceScaleFactor: options.scale || 1 });
  if (options.scheme) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: options.scheme }]);
  }
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push('error: ' + error.message));
  page.on('request', (request) => {
    if (!/^(?:file|data|blob):/.test(request.url()) &&
        !(options.origin && request.url().startsWith(options.origin))) {
      faults.push('request: ' + request.url());
    }
  });
  page.on('dialog', (dialog) => {
    faults.push('dialog: ' + dialog.message());
    dialog.dismiss();
  });
  await page.evaluateOnNewDocument(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) =>
      window.violations.push(event.violatedDirective + ' ' + event.blockedURI));
  });
  if (options.prepare) await options.prepare(page);
  await page.goto(url, { waitUntil: 'load' });
  return { page, faults };
}

export async function violations(page) {
  return page.evaluate(() => window.violations);
}
