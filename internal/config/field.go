package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
)

// setScalar parses text into a field; the error reads after the key's name.
func setScalar(v reflect.Value, text string) error {
	switch {
	case v.Type() == durationType:
		d, err := ParseDuration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
		return nil
	case v.Type() == sizeType:
		s, err := ParseSize(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(s))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("must be true or false")
		}
		v.SetBool(text == "true")
	case reflect.Int:
		i, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
		if err != nil {
			return fmt.Errorf("must be a whole number")
		}
		v.SetInt(int64(i))
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f-f != 0 {
			return fmt.Errorf("must be a number")
		}
		v.SetFloat(f)
	}
	return nil
}

// outOfRange words the allowed range when a value is outside it.
func outOfRange(v reflect.Value, tag reflect.StructTag) string {
	low, high := tag.Get("min"), tag.Get("max")
	if low == "" {
		return ""
	}
	lo, hi := reflect.New(v.Type()).Elem(), reflect.New(v.Type()).Elem()
	if setScalar(lo, low) != nil || setScalar(hi, high) != nil {
		return ""
	}
	in := true
	if v.CanInt() {
		in = v.Int() >= lo.Int() && v.Int() <= hi.Int()
	} else if v.CanFloat() {
		in = v.Float() >= lo.Float() && v.Float() <= hi.Float()
	}
	if in {
		return ""
	}
	if hint := tag.Get("hint"); hint != "" {
		return fmt.Sprintf("must be %s to %s (%s)", low, high, hint)
	}
	return fmt.Sprintf("must be %s to %s", low, high)
}
