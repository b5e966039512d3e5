package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/antrail/antrail/internal/printable"
)

// Recordings may come from any source. Steps that are read have the parts of their kind, are
// bounded, and are safe to print.

const (
	// longestWay is the largest size of a packet in a recording, in bytes.
	longestWay = 16 << 20
	// deepest is the deepest nesting of tables: twice as deep as a switch allows.
	deepest = 128
)

// Read calls tell for the ways of a recording, which is JSON as WriteJSON writes it. It escapes
// control characters in texts. An error names the way at which reading ended.
func Read(r io.Reader, tell func(Joined) error) error {
	left := &io.LimitedReader{R: r}
	d := json.NewDecoder(left)
	for n := 1; ; n++ {
		var way Joined
		left.N = longestWay
		err := d.Decode(&way)
		switch {
		case err != nil && left.N == 0:
			return fmt.Errorf("recording, packet %d: it is longer than %d bytes", n, longestWay)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("recording, packet %d: %w", n, err)
		case len(way) == 0 || !way.sound():
			return fmt.Errorf("recording, packet %d: a walk, or an entry, conntrack's answer or bucket of one, is missing, or tables are nested too deep", n)
		}
		way.clean()
		if err := tell(way); err != nil {
			return err
		}
	}
}

// sound reports whether every step has the parts of its kind.
func (j Joined) sound() bool {
	for _, w := range j {
		if w == nil {
			return false
		}
		for i := range w.Steps {
			if !w.Steps[i].sound() {
				return false
			}
		}
	}
	return true
}

func (s *Step) sound() bool {
	lacks := s.Kind == StepCT && s.CT == nil || s.Kind == StepBucket && s.Bucket == nil ||
		s.Kind == StepLearn && s.Entry == nil || s.Kind == StepOutput && s.Port == nil
	return !lacks && s.Depth >= 0 && s.Depth <= deepest
}

// clean makes all texts of a way safe to print. Only the text of ofproto/trace has lines.
func (j Joined) clean() {
	for _, w := range j {
		text := printable.Lines(w.Text)
		clean(reflect.ValueOf(w))
		w.Text = text
	}
}

// clean makes each text in a value safe to print.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clean(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				clean(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			clean(v.Index(i))
		}
	case reflect.String:
		v.SetString(printable.Text(v.String()))
	}
}
