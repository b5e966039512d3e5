package ovs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/antrail/antrail/bench/sched"
)

// Missing says why Open vSwitch cannot be measured on this machine. It is nil if it can.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("its ports need root")
	}
	_, err := findPrograms()
	return err
}

// programs is the paths of Open vSwitch's daemons and its database schema.
type programs struct{ vswitchd, server, schema string }

// findPrograms looks for the daemons in PATH and where packages put them.
func findPrograms() (p programs, err error) {
	for name, at := range map[string]*string{"ovs-vswitchd": &p.vswitchd, "ovsdb-server": &p.server} {
		for _, dir := range []string{"", "/usr/sbin/", "/usr/local/sbin/"} {
			if *at, err = exec.LookPath(dir + name); err == nil {
				break
			}
		}
		if err != nil {
			return p, fmt.Errorf("there is no %s; Debian's openvswitch-switch and openvswitch-common have all of it", name)
		}
	}
	for _, dir := range []string{"/usr/share/openvswitch", "/usr/local/share/openvswitch"} {
		p.schema = filepath.Join(dir, "vswitch.ovsschema")
		if _, err = os.Stat(p.schema); err == nil {
			return p, nil
		}
	}
	return p, err
}

// Version is "Open vSwitch" with the version that ovs-vswitchd tells, or without if it is missing.
var Version = sync.OnceValue(func() string {
	p, err := findPrograms()
	if err != nil {
		return "Open vSwitch"
	}
	var out strings.Builder
	cmd := exec.Command(p.vswitchd, "--version")
	cmd.Stdout = &out
	err = sched.RunCommand(cmd)
	line, _, _ := strings.Cut(out.String(), "\n")
	fields := strings.Fields(line)
	if err != nil || len(fields) == 0 {
		return "Open vSwitch"
	}
	return "Open vSwitch " + fields[len(fields)-1]
})
