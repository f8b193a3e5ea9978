// Where a point of the grid falls among the pixels of an image, for grid_sample and its VJP.
// Pixel centres lie at whole numbers; -1 and 1 are the outer edges of the image (corners not aligned).
// Corners are numbered 0 north-west, 1 north-east, 2 south-west, 3 south-east.
struct bilinear {
    int left, top;      // of corner 0
    int width, height;  // of the image
    float east, south;  // the point's distance from corner 0, in [0, 1)

    // Points further out than one pixel touch no corner: bringing them to -2 or size + 1 keeps that, and keeps
    // the conversion to int in range.
    static float to_pixels(float coordinate, int size) {
        return metal::clamp(((coordinate + 1.0f) * float(size) - 1.0f) * 0.5f, -2.0f, float(size) + 1.0f);
    }

    bilinear(float across, float down, int image_width, int image_height) {
        width = image_width;
        height = image_height;
        float x = to_pixels(across, width), y = to_pixels(down, height);
        left = int(metal::floor(x));
        top = int(metal::floor(y));
        east = x - metal::floor(x);
        south = y - metal::floor(y);
    }

    int column(int corner) const { return left + (corner & 1); }
    int row(int corner) const { return top + (corner >> 1); }
    bool inside(int corner) const {
        return column(corner) >= 0 && column(corner) < width && row(corner) >= 0 && row(corner) < height;
    }
    int64_t pixel(int corner) const { return int64_t(row(corner)) * width + column(corner); }

    float weight_across(int corner) const { return corner & 1 ? east : 1.0f - east; }
    float weight_down(int corner) const { return corner >> 1 ? south : 1.0f - south; }
    float weight(int corner) const { return weight_across(corner) * weight_down(corner); }
    // The derivatives of weight by the point's x and y, in pixels.
    float slope_across(int corner) const { return corner & 1 ? weight_down(corner) : -weight_down(corner); }
    float slope_down(int corner) const { return corner >> 1 ? weight_across(corner) : -weight_across(corner); }
};
