package attack

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/internal/reaptest"
	"github.com/antrail/antrail/lab"
)

// antrail is the binary that the labs of these tests run.
var antrail string

func TestMain(m *testing.M) { os.Exit(antrailtest.Main(m, &antrail)) }

// TestAttacks plays every attack for a short time. None may have an effect. Times are
// printed, not judged.
func TestAttacks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a lab needs root")
	}
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			r, err := Run(t.Context(), Options{
				Duration: 200 * time.Millisecond, Family: family, Progress: t.Output(),
				Lab: lab.Options{Binary: antrail, StateDir: reaptest.LabDir(t)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Write(t.Output()); err != nil {
				t.Error(err)
			}
			wantRows(t, r, family)
		})
	}
}

// wantRows expects a row without faults for each attack of a family.
func wantRows(t *testing.T, r *Report, family string) {
	t.Helper()
	played := map[string]bool{}
	for _, row := range r.Rows {
		t.Run(row.Attack, func(t *testing.T) {
			for _, f := range row.Faults {
				t.Error(f)
			}
		})
		played[row.Attack] = row.Sent > 0
	}
	for _, a := range attacks {
		if (a.only == "" || a.only == family) && !played[a.name] {
			t.Errorf("nothing was sent of %q", a.name)
		}
	}
}

// TestFaultsAreFound: each wrong thing in a row is a fault. A right row has none.
func TestFaultsAreFound(t *testing.T) {
	a := attack{names: []string{"ttl", "entry/SpoofGuard"}}
	for _, c := range []struct {
		name, want string // want "" for no fault
		change     func(*Row)
		arrived    int
	}{
		{name: "as it should be", change: func(*Row) {}},
		{name: "a packet arrived", arrived: 1, want: "1 copies of 20 packets", change: func(*Row) {}},
		{name: "not named", want: "names no packet", change: func(r *Row) { r.Named = nil }},
		{name: "named in another table", want: "names no packet", change: func(r *Row) { r.Named[0].Table = "Output" }},
		{name: "named at another port", want: "names no packet", change: func(r *Row) { r.Named[0].Port = "web-a" }},
		{name: "a connect failed", want: "1 of 10 connects", change: func(r *Row) { r.Others.Failed = 1 }},
		{name: "most pings lost", want: "6 of 10 pings across", change: func(r *Row) { r.Others.Across.Lost = 6 }},
		{name: "memory", want: "memory grew", change: func(r *Row) { r.MemoryAfter += mostGrowth + 1 }},
		{name: "the agent ended", want: "has ended", change: func(r *Row) { r.MemoryAfter = 0 }},
		{name: "damage", want: "stolen", change: func(r *Row) { r.damaged(damage{errors.New("stolen")}) }},
	} {
		r := Row{
			Sent: 20, Named: []Named{{Port: attacker, Reason: "entry", Table: "SpoofGuard"}}, MemoryBefore: 1 << 20, MemoryAfter: 1 << 20,
			Others: Others{Connects: 10, OneNode: Pings{Sent: 10}, Across: Pings{Sent: 10}},
		}
		c.change(&r)
		r.count(&a, c.arrived)
		r.check(&a)
		if all := strings.Join(r.Faults, "; "); (all == "") != (c.want == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: faults %q, want %q", c.name, all, c.want)
		}
	}
}

// TestPlayAgain: an attack is played again if lost pings are its only faults, three times
// at most.
func TestPlayAgain(t *testing.T) {
	for _, c := range []struct {
		name          string
		lost, fails   int // plays that lose most pings, and in which connects fail
		plays, faults int // expected
	}{
		{"nothing wrong", 0, 0, 1, 0},
		{"pings lost once", 1, 0, 2, 0},
		{"pings lost each time", 9, 0, 3, 1},
		{"a connect failed", 0, 9, 1, 1},
		{"both", 9, 9, 1, 2},
	} {
		played := 0
		r, err := playAgain(func() (Row, error) {
			r := Row{MemoryBefore: 1, MemoryAfter: 1, Others: Others{Across: Pings{Sent: 10}}}
			if played < c.lost {
				r.Others.Across.Lost = 6
			}
			if played < c.fails {
				r.Others.Failed = 1
			}
			played++
			r.check(&attack{})
			return r, nil
		})
		if err != nil || played != c.plays || r.Plays != c.plays || len(r.Faults) != c.faults {
			t.Errorf("%s: %d plays, row says %d, faults %q, %v", c.name, played, r.Plays, r.Faults, err)
		}
	}
}

// TestOptions: invalid options are refused before a lab is made.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Only: "VLAN", Family: "IPv6"}, ""},
		{Options{Only: "teapot"}, `no attack has "teapot"`},
		{Options{Family: "IPX"}, "IPv4, IPv6"},
		{Options{Duration: -1}, "negative"},
	} {
		err := c.o.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
