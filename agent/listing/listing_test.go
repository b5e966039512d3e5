package listing

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
)

// item is an object with a state and a counter, and labels from words such as app=web.
func item(namespace, name, state string, packets int, labels ...string) api.Item {
	i := api.Item{Object: "Pod/" + namespace + "/" + name, Namespace: namespace, Name: name, Labels: map[string]string{}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		i.Labels[k] = v
	}
	i.Record, _ = json.Marshal(map[string]any{"object": i.Object, "packets": packets, "ips": []string{"10.0.0." + name[len(name)-1:]}})
	count, _ := json.Marshal(packets)
	i.Lines = [][]string{{namespace, name, string(count), state}}
	return i
}

func pods(items ...api.Item) *api.Listing {
	return &api.Listing{Columns: []api.Column{{Name: "NAMESPACE"}, {Name: "NAME"}, {Name: "PACKETS", Counter: true}, {Name: "STATE"}}, Items: items}
}

var three = pods(
	item("default", "web-1", "installed", 20_000_000, "app=web"),
	item("default", "db-2", "installed", 5, "app=db"),
	item("kube-system", "dns-3", "pending", 300),
)

// TestPrint: what each option prints of three objects, or refuses.
func TestPrint(t *testing.T) {
	for _, s := range []struct {
		name string
		o    Options
		want string
	}{
		{"all", Options{}, "NAMESPACE    NAME   PACKETS   STATE\ndefault      web-1  20000000  installed\ndefault      db-2   5         installed\nkube-system  dns-3  300       pending\n"},
		{"namespace", Options{Namespace: "kube-system", NoHeaders: true}, "kube-system  dns-3  300  pending\n"},
		{"name", Options{Names: []string{"db-2"}, NoHeaders: true}, "default  db-2  5  installed\n"},
		{"full name", Options{Names: []string{"default/db-2"}, Output: "name"}, "pod/db-2\n"},
		{"selector", Options{Selector: "app in (web, db),app!=db", Output: "name"}, "pod/web-1\n"},
		{"no label", Options{Selector: "!app", Output: "name"}, "pod/dns-3\n"},
		{"sorted by number", Options{SortBy: ".packets", Output: "name"}, "pod/db-2\npod/dns-3\npod/web-1\n"},
		{"sorted by text", Options{SortBy: "{.object}", Output: "name"}, "pod/db-2\npod/web-1\npod/dns-3\n"},
		{"jsonpath", Options{Output: "jsonpath={range .items[*]}{.object} {.packets}{\"\\n\"}{end}"}, "Pod/default/web-1 20000000\nPod/default/db-2 5\nPod/kube-system/dns-3 300\n"},
		{"jsonpath of one", Options{Output: "jsonpath=.ips[0]", Names: []string{"web-1"}}, "10.0.0.1"},
		{"jsonpath filter", Options{Output: "jsonpath={.items[?(@.packets>100)].ips[0]}"}, "10.0.0.1 10.0.0.3"},
		{"yaml of one", Options{Output: "yaml", Names: []string{"db-2"}}, "ips:\n- 10.0.0.2\nobject: Pod/default/db-2\npackets: 5\n"},
		{"json", Options{Output: "json", Namespace: "kube-system"}, "[\n  {\n    \"ips\": [\n      \"10.0.0.3\"\n    ],\n    \"object\": \"Pod/kube-system/dns-3\",\n    \"packets\": 300\n  }\n]\n"},
		{"no such name", Options{Names: []string{"web-2"}}, `error: pods: there is no "web-2"; there are default/web-1, default/db-2, kube-system/dns-3`},
		{"elsewhere", Options{Names: []string{"web-1"}, Namespace: "kube-system"}, `error: pods: there is no "web-1" in namespace kube-system with these labels; there is default/web-1`},
		{"no such field", Options{SortBy: ".bytes"}, "error: --sort-by .bytes: no object has such a field; -o json shows the fields"},
		{"no such field printed", Options{Output: "jsonpath={.items[*].bytes}"}, "error: --output jsonpath={.items[*].bytes}: bytes is not found; -o json shows the fields, and a list of objects is .items"},
		{"bad form", Options{Output: "xml"}, "error: --output is text, wide, name, json, yaml or jsonpath=TEMPLATE, such as jsonpath='{.items[*].object}'"},
		{"bad template", Options{Output: "jsonpath={.items[}"}, "error: --output jsonpath"},
		{"no template", Options{Output: "jsonpath"}, "error: --output is text"},
		{"bad selector", Options{Selector: "app=="}, ""},
		{"worse selector", Options{Selector: "a b"}, "error: --selector \"a b\""},
	} {
		o := s.o
		o.Kind = "pods"
		if o.Output == "" {
			o.Output = "text"
		}
		var got bytes.Buffer
		v, err := New(o)
		if err == nil {
			err = v.Print(&got, three)
		}
		if s.want == "" { // only that it is taken
			if err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
			continue
		}
		text := got.String()
		if err != nil {
			text = "error: " + err.Error()
		}
		if wantError := strings.HasPrefix(s.want, "error: "); wantError && !strings.HasPrefix(text, s.want) || !wantError && text != s.want {
			t.Errorf("%s:\n%s\nwant\n%s", s.name, text, s.want)
		}
	}
}

// TestWatch: a watch prints objects that come, change and go, but not those whose counters alone
// changed. It may name an object that does not exist yet.
func TestWatch(t *testing.T) {
	web := func(state string, packets int) api.Item { return item("default", "web-1", state, packets) }
	db := item("default", "db-2", "installed", 5)
	moments := []*api.Listing{
		pods(web("pending", 0)),
		pods(web("pending", 10)),
		pods(web("installed", 20), db),
		pods(db),
		pods(db, web("installed", 0)),
	}
	for _, s := range []struct {
		o    Options
		want string
	}{
		{Options{Output: "text"}, "NAMESPACE  NAME   PACKETS  STATE\n" +
			"default    web-1  0        pending\n" +
			"default    web-1  20       installed\ndefault    db-2   5        installed\n" +
			"default    web-1  20       gone\n" +
			"default    web-1  0        installed\n"},
		{Options{Output: "name"}, "pod/web-1\npod/web-1\npod/db-2\npod/web-1\n"},
		{Options{Output: "name", Names: []string{"db-2"}}, "pod/db-2\n"},
	} {
		v, err := New(s.o)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		at := 0
		ask := func(context.Context) (*api.Listing, error) { return moments[at], nil }
		pause := func(context.Context) bool { at++; return at < len(moments) }
		if err := v.Watch(t.Context(), &got, ask, pause); err != nil || got.String() != s.want {
			t.Errorf("%+v: %v\n%s\nwant\n%s", s.o, err, got.String(), s.want)
		}
	}
}

// TestWidths: a line stands below those before it, letter by letter.
func TestWidths(t *testing.T) {
	var w Widths
	for _, l := range []struct{ line, want string }{
		{"A\tB\tC", "A  B  C"},
		{"ä-long\tb\tc", "ä-long  b  c"},
		{"a\tb\tc", "a       b  c"},
	} {
		if got := w.Pad(strings.Split(l.line, "\t")); got != l.want {
			t.Errorf("%q is %q, want %q", l.line, got, l.want)
		}
	}
}
