package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
)

// TestRunRefusesWrongFlows: nothing is made on the Node, and no socket stays,
// when the pipeline cannot be loaded.
func TestRunRefusesWrongFlows(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the directory of a confined switch needs root")
	}
	dir := t.TempDir()
	for file, text := range map[string]string{"agent.yaml": goodConfig, "node-a.flows": "table=0,priority=1,ip actions=dropp\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c.Socket = filepath.Join(dir, "agent.sock")
	err = Run(t.Context(), c, slog.New(slog.DiscardHandler), false)
	if err == nil || !strings.Contains(err.Error(), "node-a.flows:1:") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(c.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket: %v", err)
	}
}

func TestFilesBeside(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"a.flows", "a.groups", "a.ports", "b.meters"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(file string) string { return filepath.Join(dir, file) }
	got := pipeline.Files{Flows: in("a.flows"), Ports: in("mine.ports")}.Beside()
	want := pipeline.Files{Flows: in("a.flows"), Groups: in("a.groups"), Ports: in("mine.ports")}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (pipeline.Files{Flows: in("dump.txt")}).Beside(); got != (pipeline.Files{Flows: in("dump.txt")}) {
		t.Errorf("%+v", got)
	}
}

// TestHostOfOneFamily: a peer may have a family that this Node has not.
func TestHostOfOneFamily(t *testing.T) {
	const both, one = `podCIDRs: [10.10.0.0/24, "fd00:10:10::/64"]`, `podCIDRs: [10.10.0.0/24]`
	for podCIDRs, want := range map[string]string{
		both: "[10.10.1.0/24 10.10.1.1, fd00:10:10:1::/64 fd00:10:10:1::1]",
		one:  "[10.10.1.0/24 10.10.1.1]",
	} {
		c, err := config.Parse([]byte(strings.Replace(goodConfig, both, podCIDRs, 1)))
		if err != nil {
			t.Fatal(err)
		}
		var ways []string
		for _, p := range hostOf(c).Peers {
			ways = append(ways, fmt.Sprint(p.PodCIDR, " ", p.Gateway))
		}
		if got := "[" + strings.Join(ways, ", ") + "]"; got != want {
			t.Errorf("peers %s, want %s", got, want)
		}
	}
}

// TestConnectionCacheConfig: on by default, and off by either word of YAML.
func TestConnectionCacheConfig(t *testing.T) {
	for line, off := range map[string]bool{"": false, "connectionCache: on\n": false, "connectionCache: off\n": true, "connectionCache: false\n": true} {
		c, err := config.Parse([]byte(line + goodConfig))
		if err != nil {
			t.Fatal(err)
		}
		if got := pipeline.OptionsOf(c).Cache < 0; got != off {
			t.Errorf("%q: off is %v, want %v", line, got, off)
		}
	}
	if _, err := config.Parse([]byte("connectionCache: sometimes\n" + goodConfig)); err == nil {
		t.Error("a third state is taken")
	}
}

// TestConntrackConfig: what the section says is what the table has.
func TestConntrackConfig(t *testing.T) {
	const section = "conntrack: {max: 2048, newRate: 50, zoneMax: 1000, zones: {65520: 700, 5: 0}, profile: ovs, timeouts: {tcpEstablished: 2h, udpSingle: 5s}}\n"
	c, err := config.Parse([]byte(section + goodConfig))
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.NewPipeline(pipeline.OptionsOf(c))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	byDefault, zones := p.Local.Table().Limits()
	want := []conntrack.ZoneLimit{{Zone: 5}, {Zone: 65520, Limit: 700}}
	if p.Local.Table().Max() != 2048 || byDefault != 1000 || !slices.Equal(zones, want) {
		t.Errorf("max %d, of a zone %d, zones %+v", p.Local.Table().Max(), byDefault, zones)
	}
	timeouts := proto.OVSTimeouts()
	timeouts.TCPEstablished, timeouts.UDPSingle = 2*time.Hour, 5*time.Second
	if got := c.Conntrack.AllTimeouts(); got != timeouts {
		t.Errorf("timeouts %+v, want %+v", got, timeouts)
	}
}
