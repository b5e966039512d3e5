package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/trace"
)

var update = flag.Bool("update", false, "write the screens of testdata anew")

// start is when the first reading is taken; the second comes two seconds later.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// readings are two of a small Node: n counts them.
func reading(n uint64) *Reading {
	port := func(no uint32, name, pod string, rate, dropped uint64, up bool) api.PortRecord {
		return api.PortRecord{No: no, Name: name, Pod: pod, Driver: "packet", Up: up, Load: float64(no) / 100, Worker: int(no) % 2,
			Rx: api.Counts{Packets: n * rate, Bytes: n * rate * 1000, Dropped: n * dropped}, Tx: api.Counts{Packets: n * rate / 2, Bytes: n * rate * 60}}
	}
	rule := func(name, direction string, action cluster.RuleAction, rate uint64) policy.RuleRow {
		return policy.RuleRow{Name: name, Direction: direction, Action: action, State: ledger.Installed,
			RuleCounters: policy.RuleCounters{Sessions: n * rate / 10, Packets: n * rate, Bytes: n * rate * 500}}
	}
	r := &Reading{
		At: start.Add(time.Duration(n) * 2 * time.Second),
		Ports: []api.PortRecord{
			port(1, "antrea-tun0", "", 40, 0, true), port(2, "antrea-gw0", "", 246, 0, true),
			port(36, "client-a-0a1b2c", "default/client-a", 2_469_000, 3, true), port(37, "web-a-7c4d1e", "default/web-a", 12_000, 0, false),
		},
		Workers: []api.WorkerRecord{
			{No: 0, OFPorts: []uint32{2, 36}, Packets: n * 2_469_246, Batches: n * 40_000, Load: 0.912, WorkingNS: time.Duration(n) * 1824 * time.Millisecond, SpinningNS: time.Duration(n) * 176 * time.Millisecond},
			{No: 1, OFPorts: []uint32{1, 37}, Packets: n * 12_040, Batches: n * 11_000, Load: 0.018, WorkingNS: time.Duration(n) * 36 * time.Millisecond, AsleepNS: time.Duration(n) * 1900 * time.Millisecond, Sleeps: n * 900},
		},
		Policies: []control.PolicyRow{
			{Status: control.Status{Text: "NetworkPolicy/default/db-from-web"}, Rules: []policy.RuleRow{rule("ingress[0]", "Ingress", cluster.ActionAllow, 4200)}},
			{Status: control.Status{Text: "ClusterNetworkPolicy/web-app-db-network-policy"}, Rules: []policy.RuleRow{
				rule("AllowFromClient", "Ingress", cluster.ActionAllow, 2_000_000), rule("DropOther", "Ingress", cluster.ActionDrop, 66)}},
		},
		Connections: []api.Counter{
			{Name: "ct_entries", Value: 1000 - 100*n}, {Name: "ct_limit", Value: 262144}, {Name: "ct_zone_entries", Label: "65520", Value: 900},
			{Name: "ct_created_total", Value: 5000 * n}, {Name: "ct_insert_fail_total", Label: "ct_full"},
		},
		Drops: []api.DroppedPacket{
			{No: 3*n - 2, Time: start, Packets: 1, Port: trace.Port{No: 36, Pod: "default/client-a"}, Reason: "entry", Table: "IngressDefaultRule",
				Entry:  &trace.Entry{Objects: []trace.Object{{Object: "NetworkPolicy/default/db-from-web"}}},
				Packet: "tcp 10.10.0.26:40000 > 10.10.0.25:3306 syn", Destination: "default/db-a"},
			{No: 3*n - 1, Time: start.Add(time.Second), Packets: 1, Port: trace.Port{No: 36, Pod: "default/client-a"}, Reason: "entry", Table: "SpoofGuard",
				Packet: "tcp 10.10.0.66:40000 > 10.10.0.24:80 syn"},
			{No: 3 * n, Time: start.Add(2 * time.Second), Packets: 12, Port: trace.Port{No: 1, Name: "antrea-tun0"}, Reason: "port_ring_full"},
		},
		Reasons: []api.Drop{
			{Table: "IngressDefaultRule", Reason: "entry", Meaning: "A flow entry without an output says drop.", Packets: 70 * n},
			{Table: "SpoofGuard", Reason: "entry", Meaning: "A flow entry without an output says drop.", Packets: 7},
			{Table: "Output", Reason: "no_tunnel_dst", Meaning: "The packet reached a tunnel port, and no flow entry had set tun_dst.", Packets: 9000 * n},
		},
	}
	for i := range uint64(31) {
		r.Tables = append(r.Tables, api.Table{ID: uint8(i), Name: fmt.Sprintf("Table%02d", i), Shape: "exact over in_port", Entries: int(3 * i), Lookups: n * i * 1000,
			Matched: n * i * 990, LookupNS: time.Duration(20 + i), Drops: map[string]uint64{"entry": n * i}})
	}
	return r
}

// counters is an agent whose counters go up with each question.
type counters struct {
	t        *testing.T
	requests map[string]int
	fail     error
}

func (c *counters) JSON(_ context.Context, path string, _ url.Values, v any) error {
	if c.fail != nil {
		return c.fail
	}
	r := reading(uint64(c.requests[path]))
	c.requests[path]++
	of := map[string]any{"/ports": r.Ports, "/workers": r.Workers, "/tables": r.Tables, "/policies": r.Policies, "/conntrack/stats": r.Connections, "/drops": r.Reasons, "/drops/last": api.DroppedPackets{Packets: r.Drops}}[path]
	if of == nil {
		c.t.Errorf("%s is asked for", path)
	}
	b, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// screen is a model that was shown two readings.
func screen(view View, width, height int) Model {
	m := New(context.Background(), Options{Title: "node-a", View: view, Every: time.Second, Now: time.Now})
	m = told(m, tea.WindowSizeMsg{Width: width, Height: height})
	m = told(m, readMsg{reading: reading(1), of: m.question})
	return told(m, readMsg{reading: reading(2), of: m.question})
}

func told(m Model, msgs ...tea.Msg) Model {
	for _, msg := range msgs {
		next, _ := m.Update(msg)
		m = next.(Model)
	}
	return m
}

// keys are key presses: names of keys, or letters that are typed.
func keys(names ...string) (all []tea.Msg) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "pgdown": tea.KeyPgDown, "home": tea.KeyHome}
	for _, name := range names {
		if code, ok := special[name]; ok {
			all = append(all, tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range name {
			all = append(all, tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return all
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// shown is what a person reads.
func shown(m Model) string { return escapes.ReplaceAllString(m.View().Content, "") + "\n" }

// golden compares a screen with its file, and sees that it fits.
func golden(t *testing.T, name string, m Model) {
	t.Helper()
	got := shown(m)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != m.height {
		t.Errorf("%s: %d lines, the screen has %d", name, len(lines), m.height)
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) > m.width {
			t.Errorf("%s: %q is longer than %d", name, l, m.width)
		}
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
	}
}

// TestScreens draws every view on a small and a large terminal.
func TestScreens(t *testing.T) {
	for v := range numViews {
		golden(t, v.String()+"-80x24", screen(v, 80, 24))
	}
	golden(t, "ports-120x40", screen(Ports, 120, 40))
	golden(t, "tables-120x40", screen(Tables, 120, 40))
	golden(t, "rules-120x40", screen(Rules, 120, 40))
	golden(t, "drops-160x24", screen(Drops, 160, 24))
	golden(t, "help-80x24", told(screen(Ports, 80, 24), keys("?")...))
}

// TestKeys does what each key stands for.
func TestKeys(t *testing.T) {
	m := screen(Ports, 120, 40)
	for _, c := range []struct {
		keys  []string
		wants []string // in this order
		not   string
	}{
		{nil, []string{"client-a", "web-a", "antrea-gw0", "antrea-tun0"}, "paused"},
		{[]string{"r"}, []string{"IN/s▴", "antrea-tun0", "antrea-gw0", "web-a", "client-a"}, "▾"},
		{[]string{"sssssssss"}, []string{"PORT▾", "antrea-gw0", "antrea-tun0", "client-a", "web-a"}, "▴"},
		{[]string{"/web"}, []string{"web-a-7c4d1e", "filter: web_"}, "antrea-gw0"},
		{[]string{"/webx", "backspace", "enter"}, []string{"web-a-7c4d1e", "filter: web"}, "antrea-gw0"},
		{[]string{"/web", "esc"}, []string{"client-a", "antrea-gw0", "every 1s"}, "filter"},
		{[]string{"/none", "enter"}, []string{"no row has none"}, "antrea-gw0"},
		{[]string{"/web", "enter", "esc"}, []string{"antrea-gw0"}, "filter"},
		{[]string{"+"}, []string{"every 500ms"}, ""},
		{[]string{"--"}, []string{"every 4s"}, ""},
		{[]string{" "}, []string{"paused"}, ""},
		{[]string{"?"}, []string{"sort by the next column"}, "client-a-0a1b2c"},
		{[]string{"?", "?"}, []string{"client-a-0a1b2c"}, "sort by the next column"},
		{[]string{"down", "down"}, []string{"antrea-gw0"}, "client-a-0a1b2c"},
		{[]string{"down", "down", "home"}, []string{"client-a-0a1b2c"}, ""},
		{[]string{"5"}, []string{"COUNTER", "waiting for the agent"}, "client-a"},
	} {
		got, at := shown(told(m, keys(c.keys...)...)), 0
		for _, want := range c.wants {
			i := strings.Index(got[at:], want)
			if i < 0 {
				t.Errorf("%q: no %q where it should be in\n%s", c.keys, want, got)
				break
			}
			at += i
		}
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%q: %q is in\n%s", c.keys, c.not, got)
		}
	}
	if _, cmd := m.Update(keys("q")[0]); cmd == nil || cmd() != tea.Quit() {
		t.Error("q does not end it")
	}
}

// TestQuestions: a view asks for what it needs, answers to older questions do not
// count, and a pause asks for nothing.
func TestQuestions(t *testing.T) {
	from := &counters{t: t, requests: map[string]int{}}
	m := New(t.Context(), Options{From: from, Every: time.Millisecond, Now: func() time.Time { return start.Add(time.Duration(from.requests["/ports"]) * time.Second) }})
	first := m.Init()().(readMsg)
	m = told(m, first)
	next, ask := m.Update(tickMsg{m.question})
	m = told(next.(Model), ask())
	if m.was == nil || m.now.At.Sub(m.was.At) != time.Second || from.requests["/tables"] != 0 {
		t.Fatalf("%+v, asked %v", m, from.requests)
	}
	next, ask = m.Update(keys("3")[0])
	m = next.(Model)
	if late := told(m, first); late.now != nil {
		t.Error("an answer to an older question was taken")
	}
	m = told(m, ask())
	if m.view != Tables || len(m.now.Tables) != 31 || from.requests["/tables"] != 1 {
		t.Errorf("view %v, asked %v", m.view, from.requests)
	}
	m = told(m, keys(" ")...)
	if _, ask := m.Update(tickMsg{m.question}); ask != nil {
		t.Error("a question is asked in a pause")
	}
	from.fail = errors.New("no agent answers")
	next, ask = m.Update(keys(" ")[0])
	m = told(next.(Model), ask())
	if got := shown(m); !strings.Contains(got, "no agent answers") || !strings.Contains(got, "Table19") {
		t.Errorf("a reading that fails shows\n%s", got)
	}
}

// TestNarrow draws on terminals where nothing fits, without a panic.
func TestNarrow(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {10, 3}, {40, 5}} {
		for v := range numViews {
			m := screen(v, size[0], size[1])
			for _, l := range strings.Split(strings.TrimSuffix(shown(m), "\n"), "\n") {
				if utf8.RuneCountInString(l) > size[0] {
					t.Errorf("%v: %q is longer than %d", v, l, size[0])
				}
			}
		}
	}
}

// TestRates: counters that start again do not give absurd rates, and names cannot
// send escapes to the terminal.
func TestRates(t *testing.T) {
	was, now := reading(2), reading(1)
	now.At = was.At.Add(time.Second)
	now.Ports[2].Name = "\x1b[31mred"
	m := told(screen(Ports, 80, 24), readMsg{reading: was, of: 1})
	m = told(m, readMsg{reading: now, of: 1})
	if got := shown(m); !strings.Contains(got, "2.5M") || !strings.Contains(got, "\\x1b[31mred") {
		t.Errorf("counters that went back give\n%s", got)
	}
	for n, want := range map[float64]string{0: "0", 0.5: "0.5", 9.96: "10", 12.4: "12", 999: "999", 1000: "1.0k", 12345: "12.3k", 999_960: "1.0M", 2.5e9: "2.5G", 7e12: "7.0T"} {
		if got := amount(n).text; got != want {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
}

// TestPlain prints lines, and ends by count, by context, or by an agent that is gone.
func TestPlain(t *testing.T) {
	from := &counters{t: t, requests: map[string]int{}}
	o := Options{From: from, View: Reasons, Every: time.Millisecond, Now: func() time.Time { return start.Add(time.Duration(from.requests["/ports"]) * time.Second) }}
	var b bytes.Buffer
	if err := Plain(t.Context(), o, 2, &b); err != nil {
		t.Fatal(err)
	}
	const want = `2026-01-02T03:04:07Z  in 2.5M/s 19.9Gbit/s  out 1.2M/s 1.2Gbit/s  drop 3/s
TABLE               REASON         DROPPED/s  DROPPED  MEANING
Output              no_tunnel_dst       9.0k     9000  The packet reached a tunnel port, and no flow entry had set tun_dst.
IngressDefaultRule  entry                 70       70  A flow entry without an output says drop.
SpoofGuard          entry                  0        7  A flow entry without an output says drop.

`
	if got := b.String(); !strings.HasPrefix(got, want) || strings.Count(got, "TABLE ") != 2 {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Plain(ended, o, 0, &b); err != nil {
		t.Errorf("ended by its context: %v", err)
	}
	from.fail = errors.New("gone")
	if err := Plain(t.Context(), o, 1, &b); err == nil || err.Error() != "gone" {
		t.Errorf("an agent that is gone: %v", err)
	}
}

// TestViewNames goes there and back.
func TestViewNames(t *testing.T) {
	for v := range numViews {
		if got, err := ViewNamed(v.String()); err != nil || got != v {
			t.Errorf("%v: %v, %v", v, got, err)
		}
	}
	if _, err := ViewNamed("bogus"); err == nil || !strings.Contains(err.Error(), "ports, workers, tables") {
		t.Error(err)
	}
}
