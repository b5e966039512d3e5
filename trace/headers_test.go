package trace

import "testing"

// FuzzHeaders prints any recorded frame, cut anywhere, in every form.
func FuzzHeaders(f *testing.F) {
	b := recorded(f)[0][0].Frame
	for _, n := range []int{0, 13, 14, 20, 34, 40, len(b)} {
		f.Add([]byte(b[:n]), uint16(n))
	}
	f.Fuzz(func(t *testing.T, b []byte, segment uint16) {
		w := &Walk{ID: "1", Frame: b, Undone: &Undone{SegmentSize: segment}, Steps: []Step{
			{Kind: StepEntry, Entry: &Entry{Match: "ip,nw_dst=10.0.0.1"}}, {Kind: StepCT, CT: &CT{}},
			{Kind: StepOutput, Port: &Port{No: 1}, Frame: b},
		}}
		for _, form := range Forms() {
			printed(t, form, []Joined{{w}})
		}
	})
}
