// Next.js calls this once when a server starts.
export async function register() {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { Registry, collectDefaultMetrics } = await import('prom-client');
  collectDefaultMetrics({ register: Registry.shared() });
}
