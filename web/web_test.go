package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// countersOf are options with counters of the only Node's.
func countersOf(ask func(context.Context) ([]byte, error)) Options {
	return Options{Nodes: []Node{{Counters: ask}}}
}

// agentAPI answers for an agent: with what it was asked.
func agentAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	w.Write([]byte(r.Method + " " + r.URL.RequestURI() + " " + string(body)))
}

// visit is a page, and what it has told of itself.
type visit struct {
	*testing.T
	page   *Page
	tokens []string
	cookie *http.Cookie
}

func newVisit(t *testing.T, o Options) *visit {
	t.Helper()
	v := &visit{T: t}
	if o.Nodes == nil {
		o.Nodes = countersOf(func(context.Context) ([]byte, error) { return []byte("{\n\"atNS\": 1}"), nil }).Nodes
	}
	for i := range o.Nodes {
		if o.Nodes[i].API == nil {
			o.Nodes[i].API = http.HandlerFunc(agentAPI)
		}
	}
	o.Invite = func(token string) error { v.tokens = append(v.tokens, token); return nil }
	var err error
	if v.page, err = New(o); err != nil {
		t.Fatal(err)
	}
	return v
}

// sendRequest sends a request as it stands.
func (v *visit) sendRequest(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	v.page.ServeHTTP(w, r)
	return w.Result()
}

// request is one of a browser that was let in, if it was.
func (v *visit) request(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
	if v.cookie != nil {
		r.AddCookie(v.cookie)
	}
	return r
}

// enter lets a browser in.
func (v *visit) enter() {
	v.Helper()
	u, err := url.Parse(URL("127.0.0.1:8080", v.tokens[len(v.tokens)-1]))
	if err != nil {
		v.Fatal(err)
	}
	resp := v.sendRequest(v.request("GET", u.RequestURI(), ""))
	if resp.StatusCode != 200 || len(resp.Cookies()) != 1 {
		v.Fatalf("a good token: %d, %d cookies", resp.StatusCode, len(resp.Cookies()))
	}
	v.cookie = resp.Cookies()[0]
}

func (v *visit) want(r *http.Request, status int, text string) {
	v.Helper()
	resp := v.sendRequest(r)
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.Fatal(err)
	}
	if resp.StatusCode != status || !strings.Contains(string(b), text) {
		v.Errorf("%s %s: %d %.200s; want %d with %q", r.Method, r.URL, resp.StatusCode, b, status, text)
	}
}

// TestNothingWithoutToken: a stranger gets no file, no answer and no event.
func TestNothingWithoutToken(t *testing.T) {
	v := newVisit(t, Options{})
	for _, path := range []string{"/", "/index.html", "/main.js", "/style.css", "/icon.svg", "/api/flows", "/events", "/map.svg", "/map.css", "/plots", "/plots/x", "/nothing", "/enter/"} {
		v.want(v.request("GET", path, ""), 401, "run antrail page")
	}
	v.want(v.request("POST", "/api/trace", "{}"), 401, "run antrail page")
	for _, token := range []string{"", "wrong", v.tokens[0] + "x", v.tokens[0][1:]} {
		v.want(v.request("GET", "/enter?token="+url.QueryEscape(token), ""), 401, "antrail page prints a valid one")
	}
	v.want(v.request("POST", "/enter?token="+v.tokens[0], ""), 401, "run antrail page")
	if len(v.tokens) != 1 {
		t.Error("a wrong token has changed the right one")
	}
	v.cookie = &http.Cookie{Name: "antrail-8080", Value: v.tokens[0]}
	v.want(v.request("GET", "/", ""), 401, "run antrail page")
}

// TestTokenOnce: a token lets one browser in; another one needs another.
func TestTokenOnce(t *testing.T) {
	v := newVisit(t, Options{})
	v.enter()
	if c := v.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Name != "antrail-8080" {
		t.Errorf("the cookie is %v", c)
	}
	v.want(v.request("GET", "/", ""), 200, "<title>antrail</title>")
	v.want(v.request("GET", "/enter?token="+v.tokens[0], ""), 200, "refresh") // in already
	first := v.cookie
	v.cookie = nil
	v.want(v.request("GET", "/enter?token="+v.tokens[0], ""), 401, "was used before")
	v.enter()
	if len(v.tokens) != 3 || v.cookie.Value == first.Value {
		t.Errorf("%d tokens, the same cookie twice: %v", len(v.tokens), v.cookie.Value == first.Value)
	}
	for range maxSessions - 1 {
		v.want(v.request("GET", "/", ""), 200, "antrail")
		v.cookie = nil
		v.enter()
	}
	v.cookie = first // the first of more than there may be
	v.want(v.request("GET", "/", ""), 401, "run antrail page")
}

// TestInviteFails: if Invite fails, its token admits no browser.
func TestInviteFails(t *testing.T) {
	told := ""
	full := false
	p, err := New(Options{Invite: func(token string) error {
		if full {
			return errors.New("the disk is full")
		}
		told = token
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	full = true
	v := &visit{T: t, page: p}
	v.want(v.request("GET", "/enter?token="+told, ""), 500, "the disk is full")
	v.want(v.request("GET", "/enter?token="+told, ""), 401, "was used before")
	if _, err := New(Options{Invite: func(string) error { return errors.New("no") }}); err == nil {
		t.Error("a page nobody can be told of")
	}
}

// TestHost refuses names that somebody else may have made to mean this address.
func TestHost(t *testing.T) {
	v := newVisit(t, Options{})
	v.enter()
	for host, status := range map[string]int{
		"127.0.0.1:8080": 200, "localhost:8080": 200, "[::1]:8080": 200, "evil.example:8080": 421, "127.0.0.1.evil.example:8080": 421,
		"localhost.evil.example:8080": 421, "": 421, ":8080": 421, "127.0.0.1:8080@evil:8080": 421, "0x7f000001:8080": 421, "127.0.0.1:80x": 421,
	} {
		r := v.request("GET", "/", "")
		r.Host = host
		if got := v.sendRequest(r).StatusCode; got != status {
			t.Errorf("Host %q: %d, want %d", host, got, status)
		}
	}
}

// TestOnlyWhatShows: nothing that changes the switch is handed on, and nothing that
// another site has the browser send.
func TestOnlyWhatShows(t *testing.T) {
	v := newVisit(t, Options{})
	v.enter()
	v.want(v.request("GET", "/api/flows?table=Output&format=json", ""), 200, "GET /flows?table=Output&format=json")
	v.want(v.request("POST", "/api/trace", `{"flow":"ip"}`), 200, `POST /trace {"flow":"ip"}`)
	for method, paths := range map[string][]string{
		"DELETE": {"/api/conntrack", "/api/flows", "/"}, "PUT": {"/api/trace", "/"}, "POST": {"/api/take-over", "/api/cni/add", "/api/flows", "/", "/events"},
		"GET": {"/api/metrics", "/api/check", "/api/take-over", "/api/", "/api/trace", "/static/main.js"},
	} {
		for _, path := range paths {
			if got := v.sendRequest(v.request(method, path, "")).StatusCode; got != 404 && got != 405 {
				t.Errorf("%s %s: %d", method, path, got)
			}
		}
	}
	for header, value := range map[string]string{"Origin": "http://127.0.0.1:9999", "Sec-Fetch-Site": "same-site"} {
		r := v.request("POST", "/api/trace", "{}")
		r.Header.Set(header, value)
		if got := v.sendRequest(r).StatusCode; got != 403 {
			t.Errorf("%s: %s: %d", header, value, got)
		}
	}
}

// TestHeaders: every answer forbids the browser what the page does not need.
func TestHeaders(t *testing.T) {
	v := newVisit(t, Options{})
	check := func(r *http.Request) {
		t.Helper()
		h := v.sendRequest(r).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", r.URL, name, h.Get(name), want)
			}
		}
	}
	check(v.request("GET", "/", ""))
	v.enter()
	for _, path := range []string{"/", "/main.js", "/api/flows", "/map.css"} {
		check(v.request("GET", path, ""))
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Error("the policy is not strict:", policy)
	}
}

// TestNoOutsideResource: no file names an address of elsewhere, or brings a script
// or style within markup.
func TestNoOutsideResource(t *testing.T) {
	files, err := filepath.Glob("static/*")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "")
		for _, no := range []string{"http:", "https:", "url(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "<style", "onclick="} {
			if strings.Contains(text, no) {
				t.Errorf("%s has %q", f, no)
			}
		}
	}
}

// TestEvents tells counters in one line each, at once and again, and what is wrong.
func TestEvents(t *testing.T) {
	requests := 0
	v := newVisit(t, countersOf(func(context.Context) ([]byte, error) {
		if requests++; requests == 2 {
			return nil, errors.New("gone\nfor now")
		}
		return []byte("{\n  \"atNS\": 1\n}\n"), nil
	}))
	address := v.serve()
	resp, err := http.Get(URL(address, v.tokens[0]))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r, err := http.NewRequest("GET", "http://"+address+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(resp.Cookies()[0])
	resp, err = http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v", resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{
		"event: counters", `data: {   "atNS": 1 }`, "", "event: fault", "data: gone for now", "", "event: counters", `data: {   "atNS": 1 }`, "",
	} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
	}
}

// TestStreamsAreBounded: a stream beyond the limit gets an error.
func TestStreamsAreBounded(t *testing.T) {
	v := newVisit(t, Options{})
	v.enter()
	for range maxStreams {
		if !v.page.nodes[0].sampler.join() {
			t.Fatal("no place")
		}
	}
	v.want(v.request("GET", "/events", ""), 503, "8 readers of counters already")
	v.page.nodes[0].sampler.removeStream()
	if !v.page.nodes[0].sampler.join() {
		t.Error("a place that was left is not free")
	}
}

// TestPlots serves the pictures of a benchmark and no other file of its directory.
func TestPlots(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"bench.json": `{"began":"2026-01-02T03:04:05Z"}`, "forward.svg": "<svg/>", "secret.txt": "no"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.svg")); err != nil {
		t.Fatal(err)
	}
	v := newVisit(t, Options{Plots: dir})
	v.enter()
	v.want(v.request("GET", "/plots", ""), 200, `{"began":"2026-01-02T03:04:05Z","names":["forward"]}`)
	v.want(v.request("GET", "/plots/forward", ""), 200, "<svg/>")
	for _, name := range []string{"secret.txt", "link", "bench.json", "..%2Fforward", "nothing"} {
		v.want(v.request("GET", "/plots/"+name, ""), 404, "")
	}
	none := newVisit(t, Options{})
	none.enter()
	none.want(none.request("GET", "/plots", ""), 200, `"names":[]`)
	gone := newVisit(t, Options{Plots: filepath.Join(dir, "gone")})
	gone.enter()
	gone.want(gone.request("GET", "/plots", ""), 404, "no such file")
}

// TestMap draws the pipeline that the counters have, without styles of its own.
func TestMap(t *testing.T) {
	v := newVisit(t, countersOf(func(context.Context) ([]byte, error) {
		return []byte(`{"pipeline":{"first":0,"tables":[{"id":0,"name":"<img src=x>"},{"id":3,"name":"B"}],"edges":[{"from":0,"to":3,"kinds":["goto"],"entries":1}]}}`), nil
	}))
	v.enter()
	for _, want := range []string{`id="table-0"`, `id="edge-0-3"`, "&lt;img"} {
		v.want(v.request("GET", "/map.svg", ""), 200, want)
	}
	resp := v.sendRequest(v.request("GET", "/map.svg", ""))
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "style") || strings.Contains(string(b), "<img") {
		t.Errorf("the picture has styles or an element that is a name:\n%.300s", b)
	}
	v.want(v.request("GET", "/map.css", ""), 200, "prefers-color-scheme:dark")
	bad := newVisit(t, Options{})
	bad.enter()
	bad.want(bad.request("GET", "/map.svg", ""), 503, "cannot be drawn")
}
