package store

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
)

// killedLog is the variable of the environment that makes TestKill the process to be killed.
const killedLog = "ANTRAIL_TEST_KILLED_LOG"

// TestKill kills a process between and within its commits. A transaction that was answered is
// there after a restart, whole, and at most the one after it.
func TestKill(t *testing.T) {
	if path := os.Getenv(killedLog); path != "" {
		commitForEver(t, path)
	}
	path := filepath.Join(t.TempDir(), "conf.db")
	last := 0
	for round := range 8 {
		answered := killAfter(t, path, last+20*round)
		d, cut := open(t, path)
		d.Read(func(v View) {
			for r := range v.Named("Open_vSwitch") {
				n, _ := r.Number("next_cfg")
				ids := r.Map("external_ids")
				if int(n) != answered && int(n) != answered+1 || ids["n"] != strconv.Itoa(int(n)) {
					t.Errorf("round %d: transaction %d was answered, and %d with %q is there; %d bytes were cut", round, answered, n, ids["n"], cut)
				}
				last = int(n)
			}
		})
		checkInvariants(t, d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if last < 100 {
		t.Errorf("only %d transactions are there", last)
	}
}

// commitForEver counts in the database, and prints each number after its commit.
func commitForEver(t *testing.T, path string) {
	d, _ := open(t, path)
	for {
		err := d.Transact("count", func(tx *Tx) error {
			n, root := int64(0), (*Row)(nil)
			for root = range tx.Rows("Open_vSwitch") {
				n, _ = root.Number("next_cfg")
			}
			columns := map[string]datum.Datum{"next_cfg": datum.One(datum.Int(n + 1)), "external_ids": datum.TextMap(map[string]string{"n": strconv.Itoa(int(n) + 1)})}
			if root == nil {
				_, err := tx.Insert("Open_vSwitch", columns)
				return err
			}
			return tx.Set("Open_vSwitch", root.ID(), columns)
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Read(func(v View) {
			for r := range v.Rows(d.mustTable("Open_vSwitch")) {
				n, _ := r.Number("next_cfg")
				fmt.Println("committed", n)
			}
		})
	}
}

// killAfter runs commitForEver until it has committed a number, kills it, and returns the last
// number that it said.
func killAfter(t *testing.T, path string, number int) (answered int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$", "-test.v")
	cmd.Env = append(os.Environ(), killedLog+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "committed ")
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			continue
		}
		answered = n
		if n >= number && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	return answered
}

// TestOneProcess: a second process does not open the database.
func TestOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf.db")
	d, _ := open(t, path)
	defer d.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), killedLog+"="+path)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("process %d has the lock", os.Getpid())) {
		t.Errorf("%s, %v", out, err)
	}
}
