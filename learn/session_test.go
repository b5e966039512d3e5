package learn

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// session is a session at a lesson with a new directory.
func session(t *testing.T, number string) (*Session, *bytes.Buffer) {
	t.Helper()
	l, err := Find(number)
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	s := &Session{Lesson: l, Root: t.TempDir(), Out: out}
	if err := s.Do("", nil, nil); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	return s, out
}

// TestStep: before a table the packet and the entries that may match are shown. A line goes
// on, q ends, and at the end of input it goes on by itself.
func TestStep(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
		not  string
	}{
		{"", []string{"Switch sees\n    tcp,in_port=client,", "priority=100,in_port=web actions=output:client\n      was not taken: it asks for in_port=web, the packet has in_port=client", "So: to-db leaves the switch by web."}, "nothing"},
		{"\n", []string{"So: to-db leaves the switch by web."}, "nothing"},
		{"q\n", []string{"Switch sees"}, "So: "},
	} {
		s, out := session(t, "1")
		if err := s.Do("send", []string{"to-db"}, &Stepper{In: bufio.NewReader(strings.NewReader(c.in)), Out: out}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in\n%s", c.in, want, out)
			}
		}
		if strings.Contains(out.String(), c.not) {
			t.Errorf("%q: there is %q in\n%s", c.in, c.not, out)
		}
	}
}

// TestEvents: events run and are reported in the order of the words. A packet that is named
// twice is sent twice.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		lesson, words string
		want          []string // in this order
	}{
		{"14", "shop answer restart ack", []string{"shop\n", "answer\n", "restart: all switches are new ones; connections: 1 of node-a, 1 of node-b", "ack\n", "+est+trk"}},
		{"14", "ack forget ack", []string{"ack\n", "+est+trk", "forget: all switches are new ones; connections: 0 of node-a, 0 of node-b", "ack\n", "+new+trk"}},
		{"14", "shop wait=119s shop wait=121s restart", []string{"wait=119s: the clock is 1m59s on", "shop\n", "connections: 0 of node-a, 0 of node-b"}},
	} {
		s, out := session(t, c.lesson)
		if err := s.Do("send", strings.Fields(c.words), nil); err != nil {
			t.Fatal(err)
		}
		rest := out.String()
		for _, want := range c.want {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Fatalf("%s: no %q in\n%s", c.words, want, rest)
			}
			rest = after
		}
	}
}

// TestCompareUnsent: if a packet's question did not leave at the beginning, there is no way
// to compare with. The reason is printed.
func TestCompareUnsent(t *testing.T) {
	l, err := Find("7")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &Session{Lesson: l, Root: l.laidOut(t, "solution"), Out: &out}
	if err := s.Do("compare", []string{"self-answer"}, nil); err != nil || !strings.Contains(out.String(), "there is none in the beginning: self-answer answers self, which did not leave: self is dropped by node-a in table Output") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestFilesStay: the learner's changes stay until a reset, and a check sees that.
func TestFilesStay(t *testing.T) {
	s, out := session(t, "1")
	path := filepath.Join(s.Root, s.Lesson.Name, entriesFile)
	if err := os.WriteFile(path, []byte("table=Switch, priority=1 actions=output:nowhere\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := s.Do("", nil, nil); err != nil {
		t.Fatal(err)
	}
	err := s.Do("check", nil, nil)
	if err == nil || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), `no port "nowhere"`) {
		t.Errorf("a port that is not there: %v", err)
	}
	if err := s.Do("reset", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Do("check", nil, nil); !errors.Is(err, ErrNotDone) || !strings.Contains(out.String(), "Nothing in your files is changed yet.") {
		t.Errorf("after a reset: %v\n%s", err, out)
	}
}

// TestWrongPackets: an error about a file of packets has the line.
func TestWrongPackets(t *testing.T) {
	for text, want := range map[string]string{
		"a":                                ":1: a line is a name and what the packet is",
		"a in_port=client\na arp":          ":2: there is a packet a already",
		"a reply(b)":                       `:1: reply(NAME) needs a packet of an earlier line; "b" is not one`,
		"a tcp,nw_dst=1.2.3.4":             `:1: "tcp,nw_dst=1.2.3.4" has no in_port`,
		"\na in_port=client,nw_dst":        ":2: ",
		"a @node-z in_port=client":         `:1: there is no Node "node-z" here`,
		"wait=1s in_port=client,arp":       ":1: a packet cannot be called wait=1s",
		"a in_port=9,arp":                  ":1: the switch has no port 9",
		"a in_port=db,arp\nb reply(a),arp": "b answers a, which did not leave",
	} {
		s, _ := session(t, "1")
		path := filepath.Join(s.Root, s.Lesson.Name, packetsFile)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := s.Do("send", nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzPackets: any file of packets is sent or refused.
func FuzzPackets(f *testing.F) {
	all, err := Lessons()
	if err != nil {
		f.Fatal(err)
	}
	for _, l := range all {
		start, err := l.Start()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(start.Text[packetsFile])
	}
	f.Add("a in_port=client,vlan_tci=0x1001,ip,nw_frag=later\nb reply(a),udp")
	start, err := all[0].Start()
	if err != nil {
		f.Fatal(err)
	}
	box, err := NewSandbox(all[0], start)
	if err != nil {
		f.Fatal(err)
	}
	defer box.Close()
	f.Fuzz(func(t *testing.T, text string) {
		packets, err := parsePackets(&Files{Text: map[string]string{packetsFile: text}})
		if err != nil {
			return
		}
		for _, p := range packets {
			if w, err := box.Send(p, 0); err == nil && (len(w.Hops) == 0 || len(w.lines()) == 0) {
				t.Errorf("%q: no walk", p.flow)
			}
		}
	})
}
