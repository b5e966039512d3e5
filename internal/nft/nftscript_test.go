package nft

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// sample is a script with every command.
func sample() *Script {
	s := new(Script)
	t := s.Table("inet", "sample")
	t.Remove()
	t.Add("every command")
	t.Counter("seen")
	t.Set("pods", "ipv4_addr", "interval")
	t.Set("ports", "ipv4_addr . inet_proto . inet_service")
	t.Map("marks", "ether_addr : mark")
	t.Chain("pre", "filter", "prerouting", Raw)
	t.Chain("out", "nat", "postrouting", SNAT-5)
	t.Rule("pre", "ip saddr", "@pods", "counter name", `"seen"`, "drop")
	t.FlushSet("pods")
	t.FlushMap("marks")
	t.Element("pods", "10.10.0.0/24")
	t.Element("ports", "192.168.77.1", "6", "30080")
	t.Entry("marks", "02:61:00:00:00:01", "0x1")
	gateway := s.Table("netdev", "sample")
	gateway.Remove()
	gateway.Add("of a device")
	gateway.Chain("gateway", "filter", `egress device "lo"`, Filter)
	return s
}

// TestScript compares a script's commands with what nft(8) makes of them.
func TestScript(t *testing.T) {
	nstest.New(t).Do(t, func() {
		if err := sample().Run(); err != nil {
			t.Fatal(err)
		}
		if err := sample().Run(); err != nil {
			t.Errorf("a second time: %v", err)
		}
		const want = `table inet sample {
	comment "every command"
	counter seen {
	}
	set pods {
		type ipv4_addr
		flags interval
		elements = { 10.10.0.0/24 }
	}
	set ports {
		type ipv4_addr . inet_proto . inet_service
		elements = { 192.168.77.1 . tcp . 30080 }
	}
	map marks {
		type ether_addr : mark
		elements = { 02:61:00:00:00:01 : 0x00000001 }
	}
	chain pre {
		type filter hook prerouting priority raw; policy accept;
		ip saddr @pods counter name "seen" drop
	}
	chain out {
		type nat hook postrouting priority srcnat - 5; policy accept;
	}
}
table netdev sample {
	comment "of a device"
	chain gateway {
		type filter hook egress device "lo" priority filter; policy accept;
	}
}
`
		have := List("inet", "sample") + List("netdev", "sample")
		if have = strings.ReplaceAll(have, "\n\n", "\n"); have != want {
			t.Errorf("the tables are\n%s\nwant\n%s", have, want)
		}
	})
}

// TestAllOrNone has the last command of a script fail, by what nft(8) and the kernel refuse.
func TestAllOrNone(t *testing.T) {
	for name, c := range map[string]struct {
		last func(Table)
		want string
		gone bool
	}{
		"no such table": {func(t Table) { t.script.Table("inet", "other").Delete() }, "No such file or directory", true},
		"not a rule":    {func(t Table) { t.Rule("pre", "nonsense") }, "syntax error", false},
	} {
		t.Run(name, func(t *testing.T) {
			nstest.New(t).Do(t, func() {
				s := sample()
				c.last(s.Table("netdev", "sample"))
				err := s.Run()
				if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, fs.ErrNotExist) != c.gone {
					t.Errorf("error %v, want %q, of a thing that is not there: %v", err, c.want, c.gone)
				}
				if have := List("inet", "sample"); have != "" {
					t.Errorf("there is\n%s", have)
				}
			})
		})
	}
}

// TestRemove removes a table that is there and one that is not.
func TestRemove(t *testing.T) {
	nstest.New(t).Do(t, func() {
		if err := sample().Run(); err != nil {
			t.Fatal(err)
		}
		var s Script
		s.Table("inet", "sample").Remove()
		s.Table("inet", "other").Remove()
		if err := s.Run(); err != nil {
			t.Error(err)
		}
		if have := List("inet", "sample"); have != "" {
			t.Errorf("the table is listed:\n%s", have)
		}
		if have := List("netdev", "sample"); have == "" {
			t.Error("the other table is gone, too")
		}
	})
}
