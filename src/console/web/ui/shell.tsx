// The frame around every page: head with switches, list of pages, the page itself; the login page where nobody is
// logged in.
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { fetchData, left, logout, type Me, me, reachable } from '../lib/api.ts';
import { duration } from '../lib/format.ts';
import { heardAt, Live, link, useLoaded } from '../lib/live.ts';
import { hrefOf, place } from '../lib/route.ts';
import { useStore } from '../lib/store.ts';
import { setTheme, type Theme, theme } from '../lib/theme.ts';
import type { Upstream } from '../lib/types.ts';
import { language, setLanguage, t } from '../lib/words.ts';
import { BridgesPage } from '../pages/bridges.tsx';
import { ClientsPage } from '../pages/clients.tsx';
import { ConfigurationPage } from '../pages/configuration.tsx';
import { EventsPage } from '../pages/events.tsx';
import { LogPage } from '../pages/log.tsx';
import { LoginAgain, LoginPage } from '../pages/login.tsx';
import { MessagesPage } from '../pages/messages.tsx';
import { MqttUsersPage } from '../pages/mqttusers.tsx';
import { OverviewPage } from '../pages/overview.tsx';
import { ProxyPage } from '../pages/proxy.tsx';
import { RecordingPage } from '../pages/recording.tsx';
import { RulesPage } from '../pages/rules.tsx';
import { SecurityPage } from '../pages/security.tsx';
import { TopicsPage } from '../pages/topics.tsx';
import { Icon, Mark } from './icons.tsx';
import { IconButton } from './parts.tsx';
import { Notices } from './toast.tsx';

interface PageRow {
  readonly id: string;
  readonly title: string;
  readonly page: ComponentType;
}

function pagesOf(user: Me, proxy: boolean): readonly PageRow[] {
  const admin = user.role === 'admin';
  return [
    { id: 'overview', title: t('Overview'), page: OverviewPage },
    { id: 'bridges', title: t('Bridges'), page: BridgesPage },
    { id: 'rules', title: t('Rules'), page: RulesPage },
    { id: 'clients', title: t('Clients'), page: ClientsPage },
    { id: 'topics', title: t('Topics'), page: TopicsPage },
    { id: 'messages', title: t('Messages'), page: MessagesPage },
    { id: 'recording', title: t('Recording'), page: RecordingPage },
    { id: 'events', title: t('Events'), page: EventsPage },
    ...(proxy ? [{ id: 'proxy', title: t('Proxy'), page: ProxyPage }] : []),
    ...(admin ? [{ id: 'users', title: t('MQTT users'), page: MqttUsersPage }] : []),
    ...(admin ? [{ id: 'security', title: t('Security'), page: SecurityPage }] : []),
    { id: 'configuration', title: t('Configuration'), page: ConfigurationPage },
    ...(admin ? [{ id: 'log', title: t('Log'), page: LogPage }] : []),
  ];
}

const THEMES: Readonly<Record<Theme, { next: Theme; icon: string; label: string }>> = {
  auto: { next: 'light', icon: 'auto', label: 'Theme: system' },
  light: { next: 'dark', icon: 'sun', label: 'Theme: light' },
  dark: { next: 'auto', icon: 'moon', label: 'Theme: dark' },
};

export function Switches() {
  const now = THEMES[useStore(theme)];
  const words = useStore(language);
  return (
    <>
      <IconButton icon={now.icon} label={t(now.label)} onClick={() => setTheme(now.next)} />
      <button
        type="button"
        class="icon-button words"
        lang={words === 'en' ? 'zh' : 'en'}
        onClick={() => setLanguage(words === 'en' ? 'zh' : 'en')}
      >
        {words === 'en' ? '中文' : 'English'}
      </button>
    </>
  );
}

function LinkState() {
  const state = useStore(link);
  const there = useStore(reachable);
  const tone = there && state === 'open' ? 'good' : state === 'connecting' && there ? 'calm' : 'bad';
  const text = tone === 'good' ? t('Live') : tone === 'calm' ? t('Connecting') : t('Not live');
  return (
    <span class={`link-state ${tone}`} role="status">
      {text}
    </span>
  );
}

/** Whether what is shown is old: the gateway was heard of once, and is not now. */
function useStale(): boolean {
  const state = useStore(link);
  const there = useStore(reachable);
  const heard = useStore(heardAt);
  return heard !== 0 && (!there || state === 'stale' || state === 'lost');
}

/** Says that the gateway does not answer, and how old the page is. */
function StaleBanner() {
  const heard = useStore(heardAt);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const age = duration(Math.max(0, now - heard));
  return (
    <div class="stale-banner" role="alert">
      <b>{t('The gateway does not answer.')}</b>
      <span>
        {t('The data shown is {n} old. The page updates by itself when the gateway responds again.', { n: age })}
      </span>
    </div>
  );
}

function Console({ user, active }: { readonly user: Me; readonly active: boolean }) {
  const at = useStore(place);
  const main = useRef<HTMLElement>(null);
  const proxy = useLoaded(() => fetchData<readonly Upstream[]>('/proxy/upstreams'), 'proxy');
  const pages = pagesOf(user, (proxy.value ?? []).length > 0);
  const current = pages.find(({ id }) => id === at.page) ?? pages[0];
  useEffect(() => {
    if (!active) return;
    const live = new Live();
    return () => live.stop();
  }, [active]);
  useEffect(() => {
    document.title = `${current.title} · Tidegate`;
    main.current?.scrollTo(0, 0);
    document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [current.title]);
  const Page = current.page;
  const stale = useStale();
  return (
    <div class={stale ? 'shell stale' : 'shell'}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        {t('Skip to the page')}
      </button>
      <header class="top">
        <a class="brand" href={hrefOf('overview')} aria-label="Tidegate">
          <Mark />
          <span>Tidegate</span>
        </a>
        <LinkState />
        <span class="spring" />
        <Switches />
        <span class="who" title={t('Role: {role}', { role: t(user.role) })}>
          <b>{user.username}</b>
          <span>{t(user.role)}</span>
        </span>
        {user.via === 'session' && (
          <IconButton icon="out" label={t('Log out')} onClick={() => void logout().catch(() => {})} />
        )}
      </header>
      <nav class="side" aria-label={t('Pages')}>
        {pages.map(({ id, title }) => (
          <a key={id} href={hrefOf(id)} aria-current={id === current.id ? 'page' : undefined}>
            <Icon name={id} />
            <span>{title}</span>
          </a>
        ))}
        <a href={`docs/${language.get() === 'zh' ? 'zh/index' : 'index'}.html`} target="_blank" rel="noreferrer">
          <Icon name="docs" />
          <span>{t('Documentation')}</span>
        </a>
      </nav>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached without a mouse */}
      <main ref={main} id="main" tabIndex={0}>
        {stale && <StaleBanner />}
        <h1>{current.title}</h1>
        <Page key={current.id} />
      </main>
    </div>
  );
}

/** Who was logged in last: his page stays as it is while he logs in again. */
function useLast(user: Me | null | undefined): Me | null {
  const last = useRef<Me | null>(null);
  if (user !== null && user !== undefined) last.current = user;
  else if (left.get()) last.current = null;
  return last.current;
}

export function App() {
  const user = useStore(me);
  const last = useLast(user);
  // Texts are looked up while drawing: a change of language draws everything anew.
  const words = useStore(language);
  return (
    <>
      {user === undefined && (
        <div class="waiting" role="status">
          <Mark />
        </div>
      )}
      {/* What was being typed stays there, out of reach, for the same user; another one begins with a new page. */}
      {user !== undefined && last !== null && (
        <div
          key={`${words}/${last.username}/${last.role}`}
          class={user === null ? 'resting' : ''}
          inert={user === null}
        >
          <Console user={last} active={user !== null} />
        </div>
      )}
      {user === null && (last === null ? <LoginPage key={words} /> : <LoginAgain key={words} />)}
      <Notices />
    </>
  );
}
