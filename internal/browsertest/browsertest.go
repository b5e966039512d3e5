// Package browsertest drives a headless Chromium for tests of the page. A test sees, clicks and
// types as a person does. The test fails at its end if the browser complained, or sent a request
// to any other server. -screenshots DIR saves pictures of the page.
//
// Nothing waits for a fixed time: Poll waits until a condition is true.
package browsertest

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/reaptest"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "directory for pictures of the page")

// waitAtMost is how long an expected change may take. It only bounds a failing test.
const waitAtMost = 30 * time.Second

// Browser is a browser with a page open. It is for one goroutine.
type Browser struct {
	testing.TB
	// Base is where the page is: its scheme, address and port.
	Base string

	ctx   context.Context
	begun bool

	mu     sync.Mutex
	faults []string
}

// chromium is the process of all browsers of a test's process.
var chromium struct {
	sync.Once
	ctx    context.Context
	cancel func()
	err    error
}

// startChromium starts it once. It ends with the tests' process.
func startChromium(path string) (context.Context, error) {
	c := &chromium
	c.Do(func() {
		var dir string
		if dir, c.err = os.MkdirTemp("", "antrail-chromium-"); c.err != nil {
			return
		}
		if c.err = reaptest.Directory(dir); c.err != nil {
			return
		}
		o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.Flag("disable-dev-shm-usage", true))
		if os.Geteuid() == 0 {
			o = append(o, chromedp.NoSandbox)
		}
		var allocated context.Context
		allocated, c.cancel = chromedp.NewExecAllocator(context.Background(), o...)
		c.ctx, _ = chromedp.NewContext(allocated)
		_, c.err = chromedp.Run(c.ctx, chromedp.Evaluate[bool]("true"))
	})
	return c.ctx, c.err
}

// Open opens a page by the URL that lets a browser in, 1280 by 800 and light. Each browser has
// its own cookies and storage. Without Chromium the test is skipped.
func Open(t testing.TB, page string) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{TB: t, Base: u.Scheme + "://" + u.Host}
	process, err := startChromium(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(process, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.heard))
	t.Cleanup(func() { chromedp.Cancel(ctx); cancel() })
	b.ctx = ctx
	b.Size(1280, 800)
	b.Theme("light")
	send(b, network.Enable, network.EnableParams{})
	send(b, log.Enable, cdp.Empty{})
	b.Goto(page)
	b.Poll(`location.pathname !== "/enter" && document.readyState === "complete"`)
	return b
}

// heard records a browser's complaints, and its requests to other servers.
func (b *Browser) heard(event any) {
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
		if err != nil || u.Scheme+"://"+u.Host != b.Base {
			b.faults = append(b.faults, "a request to "+e.Request.URL)
		}
	}
}

// NoFaults fails the test for each recorded complaint. Every test ends with it.
func (b *Browser) NoFaults() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.Error(f)
	}
}

// Forgive removes an expected complaint: the first one that contains text.
func (b *Browser) Forgive(text string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.faults, func(f string) bool { return strings.Contains(f, text) })
	if i < 0 {
		b.Errorf("the browser has not complained of %q", text)
		return
	}
	b.faults = slices.Delete(b.faults, i, i+1)
}

// step takes a step and returns its result.
func step[T any](b *Browser, s chromedp.Action[T]) T {
	b.Helper()
	v, err := try(b, s)
	if err != nil {
		b.NoFaults()
		b.Fatal(err)
	}
	return v
}

// try takes a step that may fail.
func try[T any](b *Browser, s chromedp.Action[T]) (T, error) {
	ctx := b.ctx
	if b.begun { // the first one's context is the page's
		limited, cancel := context.WithTimeout(ctx, waitAtMost)
		defer cancel()
		ctx = limited
	}
	v, err := chromedp.Run(ctx, s)
	b.begun = true
	return v, err
}

// send gives the browser a command.
func send[P, R any](b *Browser, command cdp.Command[P, R], params P) {
	b.Helper()
	step(b, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, params) })
}

// Goto opens another address.
func (b *Browser) Goto(address string) {
	b.Helper()
	step(b, chromedp.Navigate(address))
}

// Size sets the window's size. A window narrower than 500 pixels is a phone's.
func (b *Browser) Size(width, height int64) {
	b.Helper()
	send(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
}

// Theme sets the colour scheme: light or dark.
func (b *Browser) Theme(name string) {
	b.Helper()
	b.media("prefers-color-scheme", name)
}

// Still sets the preference for reduced motion.
func (b *Browser) Still() {
	b.Helper()
	b.media("prefers-reduced-motion", "reduce")
}

func (b *Browser) media(feature, value string) {
	b.Helper()
	send(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
}

// Forget deletes all cookies.
func (b *Browser) Forget() {
	b.Helper()
	send(b, network.ClearBrowserCookies, cdp.Empty{})
}

// Poll waits until an expression is true. While the browser leaves a page for another, no
// expression is.
func (b *Browser) Poll(expression string) {
	b.Helper()
	for deadline := time.Now().Add(waitAtMost); ; time.Sleep(50 * time.Millisecond) {
		yes, err := try(b, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err != nil && !strings.Contains(err.Error(), "navigated") {
			b.NoFaults()
			b.Fatal(err)
		}
		if err == nil && yes {
			return
		}
		if time.Now().After(deadline) {
			b.NoFaults()
			b.Fatalf("never came true: %s\nthe page says:\n%s", expression, b.Value(`location.hash + "\n" + document.body.innerText`))
		}
	}
}

// Value returns the value of an expression, as text.
func (b *Browser) Value(expression string) string {
	b.Helper()
	return step(b, chromedp.Evaluate[string]("String("+expression+")"))
}

// Click clicks the first element of a selector, wherever it is.
func (b *Browser) Click(selector string) {
	b.Helper()
	s := chromedp.CSS(selector)
	step(b, chromedp.WaitVisible(s))
	step(b, chromedp.ScrollIntoView(s))
	step(b, chromedp.Click(s))
}

// Type types into the first element of a selector, after the text that is there.
func (b *Browser) Type(selector, text string) {
	b.Helper()
	step(b, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Put sets the value of the first element of a selector.
func (b *Browser) Put(selector, text string) {
	b.Helper()
	step(b, chromedp.SetValue(chromedp.CSS(selector), text))
}

// Press presses keys where the focus is: "\t" is Tab, "\r" Enter.
func (b *Browser) Press(keys string) {
	b.Helper()
	step(b, chromedp.KeyEvent(keys))
}

// Key presses a key that has a name.
func (b *Browser) Key(name string) {
	b.Helper()
	b.Value(fmt.Sprintf(`(document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true, cancelable: true}))`, name))
}

// Shot saves a picture of the page.
func (b *Browser) Shot(name string) {
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
