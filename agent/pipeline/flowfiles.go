package pipeline

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// Files are the files of a pipeline, in the text of ovs-ofctl. Flows is required.
type Files struct {
	Flows, Groups, Meters string
	// Ports names the ports, as ovs-ofctl dump-ports-desc does.
	Ports string
}

// Beside fills in missing files with existing ones beside the flow file: those with its name
// and the endings .groups, .meters and .ports.
func (f Files) Beside() Files {
	stem, ok := strings.CutSuffix(f.Flows, ".flows")
	if !ok {
		return f
	}
	for ending, path := range map[string]*string{".groups": &f.Groups, ".meters": &f.Meters, ".ports": &f.Ports} {
		if _, err := os.Stat(stem + ending); err == nil && *path == "" {
			*path = stem + ending
		}
	}
	return f
}

// String is the name of the flow file.
func (f Files) String() string { return f.Flows }

// Load makes a switch without ports that runs the files' entries. The error names file, line
// and column. If only the whole shows the fault, it names the file and the entry.
func (f Files) Load(o Options) (*Pipeline, error) {
	program, err := f.program(o.names)
	if err != nil {
		return nil, err
	}
	return loadProgram(f, program, o)
}

// program reads and parses the files.
func (f *Files) program(names map[uint32]string) (*flow.Program, error) {
	src := parse.Sources{Names: flow.NewNames()}
	for no, name := range names {
		src.Names.SetPort(no, name)
	}
	for _, s := range []struct {
		to   *parse.Source
		path string
	}{{&src.Flows, f.Flows}, {&src.Groups, f.Groups}, {&src.Meters, f.Meters}, {&src.Ports, f.Ports}} {
		if s.path == "" {
			continue
		}
		source, err := parse.File(s.path)
		if err != nil {
			return nil, err
		}
		*s.to = source
	}
	return parse.Program(src)
}

// portLine matches a port as ovs-ofctl dump-ports-desc prints it.
var portLine = regexp.MustCompile(`^\s*(\d+)\([^)]*\): addr:([0-9A-Fa-f:]{17})`)

// PortAddresses reads the MAC addresses in the ports file.
func (f Files) PortAddresses() (map[[6]byte]uint32, error) {
	path := f.Ports
	if path == "" {
		return nil, errors.New("give the port where packets enter: --in-port, or --ports with a file of the ports' addresses")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	m := make(map[[6]byte]uint32)
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		words := portLine.FindStringSubmatch(lines.Text())
		if words == nil {
			continue
		}
		no, errNo := strconv.ParseUint(words[1], 10, 32)
		mac, errMAC := net.ParseMAC(words[2])
		if err := errors.Join(errNo, errMAC); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		m[[6]byte(mac)] = uint32(no)
	}
	return m, lines.Err()
}

// loadProgram makes a switch without ports that runs prog.
func loadProgram(from Source, prog *flow.Program, o Options) (*Pipeline, error) {
	p, err := NewPipeline(o)
	if err != nil {
		return nil, err
	}
	if err := p.Switch.Apply(flow.BundleOf(prog)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", from, err), p.Close())
	}
	return p, nil
}
