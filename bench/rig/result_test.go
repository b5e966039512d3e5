package rig

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/bench/report"
)

// TestNothingToSave checks that a run that found nothing leaves what an earlier one saved.
func TestNothingToSave(t *testing.T) {
	dir := t.TempDir()
	if err := new(Result).Save(dir); err == nil || !strings.Contains(err.Error(), "nothing is saved") {
		t.Errorf("%v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v: %v", err, files)
	}
}

// TestCompare compares samples whose p is known. If all four figures are lower than the other four, 2 of
// the 70 orders are as far apart: p = 0.029.
func TestCompare(t *testing.T) {
	result := func(values ...float64) *Result {
		line := report.Line{Name: "speed", Unit: "m/s", Reached: []*report.Spread{report.Series(values).Spread(), nil}}
		return &Result{Comparisons: []*report.Comparison{{Profile: "walk", Sides: []string{"one", "other"}, Lines: []report.Line{line}}}}
	}
	for _, c := range []struct {
		b    *Result
		want string
	}{
		{result(20, 22, 24, 26), "+100.00% (p=0.029 n=4)"},
		{result(10, 11, 12, 13), "~ (p=1.000 n=4)"},
	} {
		var out strings.Builder
		if err := Compare(&out, result(10, 11, 12, 13), c.b); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v, want %s:\n%s", err, c.want, out.String())
		}
	}
	var out strings.Builder
	other := result(20, 22, 24, 26)
	other.Machine.CPUs = 64
	other.Comparisons[0].Lines = append(other.Comparisons[0].Lines, report.Line{Name: "thrown", Unit: report.SamplesUnit, Reached: []*report.Spread{report.Series{1}.Spread()}})
	err := Compare(&out, other, other)
	if err != nil || !strings.Contains(out.String(), "0 of 1 figures changed") || strings.Contains(out.String(), "machines differ") {
		t.Errorf("with itself: %v\n%s", err, out.String())
	}
	out.Reset()
	if err := Compare(&out, result(10, 11, 12, 13), other); err != nil || !strings.Contains(out.String(), "1 of 1 figures changed") || !strings.Contains(out.String(), "machines differ") {
		t.Errorf("with another machine's: %v\n%s", err, out.String())
	}
	if err := Compare(io.Discard, result(1), &Result{}); err == nil {
		t.Error("nothing in common, and no error")
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{}", `{"comparisons":[null]}`, `{"comparisons":[{"profile":"p","sides":["a"],"lines":[{"name":"x","reached":[null,null]}]}]}`} {
		path := filepath.Join(dir, "bench.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "none")); err == nil {
		t.Error("no file, and no error")
	}
}
