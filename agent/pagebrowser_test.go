package agent

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/web"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The page in a real browser, with a Node of examples/web-app on memory ports
// behind it and packets that pass. -screenshots DIR keeps what a person would see.

var screenshots = flag.String("screenshots", "", "directory for pictures of the page")

// browsing is a browser with the page open.
type browsing struct {
	*testing.T
	ctx  context.Context
	node *watchedNode
	base string

	begun bool

	mu     sync.Mutex
	faults []string
}

// hostileName is what nobody would call a policy's rule.
const hostileName = `<img src=x onerror=alert(1)>`

// hostileObjects are those of the example, and a policy with that name in it.
func hostileObjects(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../examples/web-app")); err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata:
  name: hostile
spec:
  priority: 5
  appliedTo:
  - podSelector: {matchLabels: {pod: client-a}}
  egress:
  - name: %q
    action: Allow
    to:
    - ipBlock: {cidr: 10.99.0.0/16}
`, hostileName)
	if err := os.WriteFile(filepath.Join(dir, "hostile.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// browse opens the page in a browser of its own.
func browse(t *testing.T) *browsing {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	b := &browsing{T: t, node: loadWatched(t, hostileObjects(t), "node-a")}
	invitation := b.serve()
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("disable-dev-shm-usage", true))
	if os.Geteuid() == 0 {
		o = append(o, chromedp.NoSandbox)
	}
	allocated, cancel := chromedp.NewExecAllocator(t.Context(), o...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated, chromedp.WithListener(b.heard))
	t.Cleanup(func() { chromedp.Cancel(ctx); cancel() })
	b.ctx = ctx
	b.size(1280, 800)
	b.theme("light")
	send(b, network.Enable, network.EnableParams{})
	send(b, log.Enable, cdp.Empty{})
	b.do(chromedp.Navigate(invitation))
	b.poll(`document.querySelector("#pulse")?.dataset.state === "live"`)
	return b
}

// serve serves the Node's page, and returns the URL that lets a browser in.
func (b *browsing) serve() string {
	p := b.node.pipeline
	mux := p.routes(registry(p))
	mux.HandleFunc("POST /trace/live", func(w http.ResponseWriter, r *http.Request) { p.answerLive(w, r, b.node.name) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var invitation string
	page, err := newPage(mux, p.counterText, ln.Addr().String(), b.plots(), func(url string) error { invitation = url; return nil })
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, ln, page) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	b.base = "http://" + ln.Addr().String()
	return invitation
}

// plots is a directory as a benchmark leaves it.
func (b *browsing) plots() string {
	dir := b.TempDir()
	err := os.CopyFS(dir, os.DirFS("../docs/plots"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "bench.json"), []byte(`{"began": "2026-11-22T12:00:00Z"}`), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// heard notes what a browser complains of, and what it asks of others.
func (b *browsing) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, "exception: "+e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			b.faults = append(b.faults, fmt.Sprintf("console: %s %s", e.Type, e.Args[0].Value))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.faults = append(b.faults, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || "http://"+u.Host != b.base {
			b.faults = append(b.faults, "a request to "+e.Request.URL)
		}
	}
}

// noFaults is the end of every test.
func (b *browsing) noFaults() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.Error(f)
	}
}

// do takes steps, each within half a minute.
func (b *browsing) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	for _, s := range steps {
		step(b, s)
	}
}

// step takes a step that gives something, within half a minute.
func step[T any](b *browsing, s chromedp.Action[T]) T {
	b.Helper()
	ctx := b.ctx
	if b.begun { // the first one's context is the browser's
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		ctx = limited
	}
	v, err := chromedp.Run(ctx, s)
	if b.begun = true; err != nil {
		b.noFaults()
		b.Fatal(err)
	}
	return v
}

// send gives the browser a command.
func send[P, R any](b *browsing, command cdp.Command[P, R], params P) {
	b.Helper()
	step(b, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, params) })
}

func (b *browsing) size(width, height int64) {
	b.Helper()
	send(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
}

// theme is light or dark.
func (b *browsing) theme(name string) {
	b.Helper()
	send(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// poll waits until an expression is true.
func (b *browsing) poll(expression string) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if b.value("Boolean("+expression+")") == "true" {
			return
		}
		if time.Now().After(deadline) {
			b.noFaults()
			b.Fatalf("never came true: %s\nthe page says:\n%s", expression, b.value(`location.hash + "\\n" + document.querySelector("#panel").innerText`))
		}
	}
}

// value is what an expression gives, as text.
func (b *browsing) value(expression string) string {
	b.Helper()
	return step(b, chromedp.Evaluate[string]("String("+expression+")"))
}

// click clicks the first element of a selector, wherever it is.
func (b *browsing) click(selector string) {
	b.Helper()
	s := chromedp.CSS(selector)
	b.do(chromedp.WaitVisible(s), chromedp.ScrollIntoView(s), chromedp.Click(s))
}

// shot keeps a picture of the page as it is.
func (b *browsing) shot(name string) {
	b.Helper()
	if *screenshots == "" {
		return
	}
	time.Sleep(700 * time.Millisecond) // what moves has come to rest
	png := step(b, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
		b.Fatal(err)
	}
}

// traffic sends packets until the test ends: to a Service, and some that lie.
func (b *browsing) traffic() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			b.node.send(b.T, nodeClient, syn("10.96.0.24", uint16(1000+i%500)), packet.Tunnel{}, nodeWeb)
			if i%4 == 0 {
				forged := syn("10.10.0.24", 1000)
				copy(forged[26:], []byte{10, 10, 0, 99})
				b.node.send(b.T, nodeClient, forged, packet.Tunnel{}, 0)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	b.Cleanup(func() { stop(); <-ended })
}

// TestPageMap goes from the map, with live rates, to a table, an entry and its
// object.
func TestPageMap(t *testing.T) {
	b := browse(t)
	b.traffic()
	b.poll(`document.querySelectorAll("#map [id^=table-]").length > 20`)
	b.poll(`document.querySelectorAll("#map .edge.busy").length > 5`)
	b.poll(`document.querySelector("#map .drop.busy") !== null`)
	b.poll(`document.querySelector('[data-figure="dropped"]').className === "bad"`)
	b.shot("map-light")
	b.size(1280, 970)
	b.shot("map-whole") // docs/page.png
	b.size(1280, 800)
	b.theme("dark")
	b.shot("map-dark")
	b.theme("light")

	guard := b.value(`[...document.querySelectorAll("#map [role=link]")].find((g) => g.getAttribute("aria-label") === "Table SpoofGuard").id`)
	b.click("#" + guard + " .box")
	b.poll(`document.querySelectorAll("#panel .entries li").length > 10`)
	b.poll(`[...document.querySelectorAll("#panel .entries li.busy")].some((e) => e.innerText.includes("nw_src=10.10.0.26"))`)
	b.shot("table")
	b.do(chromedp.SendKeys(chromedp.CSS(`#panel input[type="search"]`), "10.10.0.26"))
	b.poll(`document.querySelectorAll("#panel .entries li").length < 6`)
	b.click("#panel .entries button")
	b.poll(`document.querySelector("#panel .origins a")?.textContent === "Pod/default/client-a"`)
	b.click("#panel .origins a")
	b.poll(`document.querySelector("#panel .yaml")?.textContent.includes("nodeName: node-a")`)
	b.poll(`document.querySelectorAll("#map .table.on").length > 3`)
	b.shot("object")
	b.noFaults()
}

// TestPageWalk walks a typed packet, and one that passes, step by step.
func TestPageWalk(t *testing.T) {
	b := browse(t)
	b.traffic()
	b.do(chromedp.Navigate(b.base + "/#/walk"))
	b.poll(`document.querySelectorAll("#typed option").length > 3`)
	b.do(chromedp.SetValue(chromedp.CSS("#typed textarea"), `in_port="client-a",tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.26,nw_dst=10.96.0.24,tp_dst=80`))
	b.click("#typed button.first")
	b.poll(`document.querySelector("#way .where")?.textContent.startsWith("1 of ")`)
	steps := b.value(`document.querySelectorAll("#way .hops li").length`)
	b.poll(`document.querySelectorAll("#map .focus").length === 1`)
	b.value(`document.activeElement.blur()`)
	b.key("ArrowRight")
	b.poll(`document.querySelector("#way .where").textContent.startsWith("2 of ")`)
	b.click("#way .steps .first")
	b.poll(`document.querySelector("#way .where").textContent.startsWith("3 of ")`)
	b.poll(`document.querySelector("#way .hop").textContent.includes("SpoofGuard")`)
	b.key("ArrowLeft")
	b.poll(`document.querySelector("#way .change")?.textContent.startsWith("reg")`)
	for range 12 {
		b.key("ArrowRight")
	}
	b.shot("walk")
	b.key("End")
	b.poll(`document.querySelector("#way .where").textContent === "` + steps + ` of ` + steps + `"`)
	b.poll(`document.querySelector("#way .verdict").textContent.startsWith("output to port")`)
	b.poll(`document.querySelectorAll("#map .table.on").length > 15 && document.querySelectorAll("#map .edge.on").length > 15`)
	b.shot("walk-end")

	b.click("#panel details summary")
	b.do(chromedp.SendKeys(chromedp.CSS("#live input"), "src host 10.10.0.99"))
	b.click("#live button")
	b.click(".caught button")
	b.key("End")
	b.poll(`document.querySelector("#way .verdict")?.textContent.includes("SpoofGuard")`)
	b.poll(`document.querySelector("#map .drop.on") !== null`)
	b.shot("walk-live")
	b.do(chromedp.SetValue(chromedp.CSS("#typed textarea"), "in_port=client-a,nonsense=1"))
	b.click("#typed button.first")
	b.poll(`document.querySelector("#way .fault")?.textContent.includes("nonsense")`)
	b.mu.Lock() // the browser logs the answer 400 that it got
	for i, f := range b.faults {
		if strings.Contains(f, "status of 400") {
			b.faults = append(b.faults[:i], b.faults[i+1:]...)
			break
		}
	}
	b.mu.Unlock()
	b.noFaults()
}

// key presses a key that has a name.
func (b *browsing) key(name string) {
	b.Helper()
	b.value(fmt.Sprintf(`(document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true, cancelable: true}))`, name))
}

// views are all of them, by a thing that each has when it is there.
var views = map[string]string{
	"":                                `#map .table`,
	"table/SpoofGuard":                `#panel .entries li`,
	"object/Pod%2Fdefault%2Fclient-a": `#panel .yaml`,
	"walk":                            `#typed select`,
	"drops":                           `#panel .grid td`,
	"connections":                     `#panel .grid td`,
	"objects":                         `#panel .rows li`,
	"nodes":                           `#panel .node li`,
	"plots":                           `#panel img`,
}

// TestPageViews opens every view on a laptop and on a phone, in light and in dark:
// nothing is wider than the window.
func TestPageViews(t *testing.T) {
	b := browse(t)
	b.traffic()
	for _, s := range []struct {
		name          string
		width, height int64
	}{{"laptop", 1280, 800}, {"phone", 390, 844}} {
		b.size(s.width, s.height)
		for view, has := range views {
			for _, theme := range []string{"light", "dark"} {
				b.theme(theme)
				b.value(fmt.Sprintf("location.hash = %q", "#/"+view))
				b.poll(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, has))
				b.poll(`[...document.images].every((i) => i.complete && i.naturalWidth > 0)`)
				if wide := b.value(`document.documentElement.scrollWidth`); wide != fmt.Sprint(s.width) {
					t.Errorf("%s on a %s is %s wide", view, s.name, wide)
				}
				if over := b.value(`document.querySelector("#panel").scrollWidth - document.querySelector("#panel").clientWidth`); over != "0" {
					t.Errorf("%s on a %s: details are %s pixels too wide", view, s.name, over)
				}
				if view == "drops" {
					b.poll(`document.querySelector("#panel .origins a")?.textContent !== undefined`)
				}
				b.shot(fmt.Sprintf("%s-%s-%s", s.name, theme, strings.ReplaceAll(strings.SplitN(view+"map", "/", 2)[0], "%", "")))
			}
		}
	}
	b.noFaults()
}

// TestPageHostileName shows a name that would be an element, as the text it is.
func TestPageHostileName(t *testing.T) {
	b := browse(t)
	b.do(chromedp.Navigate(b.base + "/#/object/ClusterNetworkPolicy%2Fhostile"))
	b.poll(`document.querySelector("#panel .yaml")?.textContent.includes("onerror=alert(1)")`)
	b.poll(`[...document.querySelectorAll("#panel .past")].some((e) => e.textContent.includes("` + hostileName + `"))`)
	b.do(chromedp.Navigate(b.base + "/#/table/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"))
	b.poll(`document.querySelector("#panel h2")?.textContent === "` + hostileName + `"`)
	b.poll(`document.querySelector("#panel .fault") !== null`)
	if n := b.value(`document.images.length`); n != "0" {
		t.Errorf("%s images were made", n)
	}
	// What would make markup of text is refused by the browser itself.
	if got := b.value(`(() => { try { document.body.innerHTML = "<p>x"; return "made"; } catch (e) { return e.name; } })()`); got != "TypeError" {
		t.Errorf("markup from text: %s", got)
	}
}

// TestPageKeyboard uses no mouse.
func TestPageKeyboard(t *testing.T) {
	b := browse(t)
	b.poll(`document.querySelectorAll("#map .table").length > 20`)
	for _, k := range []struct{ key, hash string }{
		{"w", "#/walk"}, {"d", "#/drops"}, {"c", "#/connections"}, {"o", "#/objects"}, {"n", "#/nodes"}, {"b", "#/plots"}, {"m", "#/"}, {"d", "#/drops"}, {"Escape", "#/"},
	} {
		b.key(k.key)
		b.poll(fmt.Sprintf("location.hash === %q", k.hash))
	}
	b.key("?")
	b.poll(`document.querySelector("#help").open`)
	b.shot("help")
	b.do(chromedp.Click(chromedp.CSS("#help button")))
	b.poll(`!document.querySelector("#help").open`)
	// Tab goes from the top of the page over links to the tables, and shows where it is.
	b.value(`document.activeElement?.blur()`)
	for i := 0; b.value(`document.activeElement?.getAttribute("aria-label")`) != "Table Classifier"; i++ {
		if i > 40 {
			t.Fatalf("after %d tabs the focus is on %s", i, b.value(`document.activeElement.outerHTML.slice(0, 200)`))
		}
		b.do(chromedp.KeyEvent("\t"))
	}
	if width := b.value(`getComputedStyle(document.activeElement.querySelector(".box")).strokeWidth`); width != "3px" {
		t.Errorf("the focus is shown by a frame of %s", width)
	}
	b.do(chromedp.KeyEvent("\r"))
	b.poll(`location.hash === "#/table/Classifier"`)
	b.poll(`document.activeElement.tagName === "H2"`)
	b.key("/")
	b.poll(`document.activeElement.type === "search"`)
	b.do(chromedp.KeyEvent("w")) // is a letter there
	b.poll(`document.activeElement.value === "w" && location.hash === "#/table/Classifier"`)
	b.noFaults()
}

// TestPageStranger: a browser that was not let in gets no file, only what to do.
func TestPageStranger(t *testing.T) {
	b := browse(t)
	send(b, network.ClearBrowserCookies, cdp.Empty{})
	b.do(chromedp.Navigate(b.base + "/style.css"))
	if text := b.value(`document.body.innerText`); !strings.HasPrefix(text, "401: run antrail page") {
		t.Errorf("a browser without a cookie sees %q", text)
	}
}
