// Entry of the console pages: theme, language, address, then who is logged in; draws into #app. Loaded by index.html.
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { whoAmI } from './lib/api.ts';
import { startRoute } from './lib/route.ts';
import { startTheme } from './lib/theme.ts';
import { language } from './lib/words.ts';
import { App } from './ui/shell.tsx';

startTheme();
startRoute();
document.documentElement.lang = language.get();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
whoAmI().catch(() => {});
