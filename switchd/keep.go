package switchd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/switchd/local"
)

// A switch that is killed and started again has its earlier entries and ports before a controller
// connects. They are in a file beside the connections, as text:
//
//	antrail switch 1 SHA256      of all that follows
//	{…}                          kept as JSON, in one line
//	flow add …                   a bundle (door.AppendBundle)
//
// The file is valid if its checksum is right and it is of this boot of the machine.

// keptSchema begins the file. Its number changes with the format.
const keptSchema = "antrail switch 1 "

// maxKept is the largest file: a hundred thousand entries take about 17 MB.
const maxKept = 256 << 20

// kept is the part of the file before the bundle.
type kept struct {
	Boot    string              `json:"boot"` // the machine's, in hexadecimal
	TakenNS int64               `json:"takenNS"`
	Learned []telemetry.Learned `json:"learned,omitempty"`
	Ports   []door.PortSpec     `json:"ports,omitempty"`
}

// composeKept is the file's text for a switch's present state.
func composeKept(s *local.Switch, p *PortSet) ([]byte, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	head := kept{Boot: hex.EncodeToString(boot[:]), TakenNS: s.Clock(), Ports: p.Specs()}
	bundle := &flow.Bundle{Replace: true, Names: s.Names(), First: s.First()}
	for _, f := range s.Flows() {
		if f.Learned {
			head.Learned = append(head.Learned, telemetry.Learned{Entry: f.Entry, Age: f.Duration, Idle: f.Idle})
		} else {
			bundle.Add = append(bundle.Add, f.Entry)
		}
	}
	for _, g := range s.Groups() {
		bundle.Groups = append(bundle.Groups, g.Group)
	}
	for _, m := range s.Meters() {
		bundle.Meters = append(bundle.Meters, m.Meter)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	text = door.AppendBundle(append(text, '\n'), bundle)
	return append([]byte(keptSchema+sumOf(text)+"\n"), text...), nil
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// readKept reads the file. The error is the reason why it is not usable.
func readKept(path string, now int64) (*kept, *flow.Bundle, error) {
	b, err := ReadOwnFile(path, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errors.New("there is none")
	}
	if err != nil {
		return nil, nil, err
	}
	return parseKept(b, now)
}

// parseKept reads the text of such a file.
func parseKept(b []byte, now int64) (*kept, *flow.Bundle, error) {
	schema, b, _ := bytes.Cut(b, []byte("\n"))
	sum, known := strings.CutPrefix(string(schema), keptSchema)
	switch {
	case !known:
		return nil, nil, errors.New("it has another schema, or none")
	case sum != sumOf(b):
		return nil, nil, errors.New("it is incomplete or damaged: its checksum is wrong")
	}
	head, b, _ := bytes.Cut(b, []byte("\n"))
	k := &kept{}
	if err := json.Unmarshal(head, k); err != nil {
		return nil, nil, fmt.Errorf("line 2: %w", err)
	}
	boot, err := BootID()
	switch {
	case err != nil:
		return nil, nil, err
	case k.Boot != hex.EncodeToString(boot[:]):
		return nil, nil, errors.New("it is of an earlier boot of the machine")
	case k.TakenNS > now:
		return nil, nil, errors.New("it is from the future")
	}
	for i := range k.Learned {
		k.Learned[i].Age += time.Duration(now - k.TakenNS)
		k.Learned[i].Idle += time.Duration(now - k.TakenNS)
	}
	bundle, err := door.ReadBundle(bytes.NewReader(b), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("the bundle behind line 2: %w", err)
	}
	return k, bundle, nil
}

// keepShare times the duration of a write is the pause after it, so writing takes a twentieth of a
// processor at most.
const keepShare = 20

// runKeep writes the file of entries and ports in the second after a change, until ctx ends, and
// then once more.
func (p *Process) runKeep(ctx context.Context) error {
	var last string
	p.keepIfChanged(&last)
	for pause := time.Now(); ; {
		select {
		case <-ctx.Done():
			p.keepIfChanged(&last)
			return nil
		case <-p.sw.Seconds():
		}
		if start := time.Now(); start.After(pause) {
			p.keepIfChanged(&last)
			pause = time.Now().Add(keepShare * time.Since(start))
		}
	}
}

// keepIfChanged writes the file if something has changed since last.
func (p *Process) keepIfChanged(last *string) {
	generation := p.sw.Generation()
	now := fmt.Sprint(generation, p.sw.Learnings(), p.ports.Changes())
	if now == *last || p.sw.Names() == nil {
		return
	}
	text, err := composeKept(p.sw, p.ports)
	if err == nil {
		err = WriteOwnFile(p.keptPath(), text)
	}
	if err != nil {
		p.Log.Error("entries and ports are not written", "file", p.keptPath(), "error", err)
		return
	}
	*last = now
	p.server.SetKept(generation)
}
